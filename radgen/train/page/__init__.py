"""The page of `radgen evaluate`: results.json in, one HTML file out that needs neither network nor files."""

from radgen.train.page.render import check_place, render, write_page

__all__ = ["check_place", "render", "write_page"]
