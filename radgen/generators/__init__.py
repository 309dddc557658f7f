"""What is asked: contrasts, cross-axis pairs, splits, filters, and the files they are written to."""
