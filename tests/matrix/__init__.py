"""Each program reads the settings that name it, and no others."""
