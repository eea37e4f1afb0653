"""VerticalPodAutoscaler, VPAScope and VerticalPodAutoscalerCheckpoint: types, defaults, rules, admission."""
