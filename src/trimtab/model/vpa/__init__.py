"""VerticalPodAutoscaler, VPAScope and VerticalPodAutoscalerCheckpoint.

Read `types` first, then `defaults`. `validation` checks whole objects, `policy_validation` the policy of one container.
`admission` builds the response of the webhook from them. Recommendations belong to `decide.vertical`.
"""
