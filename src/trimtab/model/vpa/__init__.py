"""VerticalPodAutoscaler v1 with `vpaScope`, VPAScope, and checkpoints: types, defaults, validation."""
