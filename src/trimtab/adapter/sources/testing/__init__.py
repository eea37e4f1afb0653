"""The testing source: values set by hand, over HTTP or from a file, with labels that selectors choose by."""
