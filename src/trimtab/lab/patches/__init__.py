"""The four ways to change part of an object: JSON patch, merge patch, strategic merge patch and server-side apply."""
