"""The page of `radgen evaluate`: results.json in, one HTML file out that needs neither network nor files."""

from radgen.train.page.render import render, write_page

__all__ = ["render", "write_page"]
