"""Real nodes, without one: the ways to their pods and the images that they import."""
