"""Every flag, gate, value of the chart and annotation, against every program that could honour it.

A cell names the test that shows that the program honours the setting, or the row's reason why it has nothing to do
with it, or the issue that keeps it open. `test_matrix.py` holds this table to the declarations in the code: a setting
without a row fails, and so does a program that reads a setting which its cell does not name.
"""

from dataclasses import dataclass, field

RUN = ("horizontal", "recommender", "updater", "admission", "roles", "adapter", "dashboard")
"""The components of `trimtab run`; what each reads is recorded while it runs."""
ASIDE = ("early", "explain", "page", "top", "simulate", "replay", "validate", "convert", "lab")
"""The look between two syncs, the commands, the page of the operator's port, and the lab with `trimtab up`."""
COLUMNS = (*RUN, *ASIDE)

PLUGINS = "tests/scenarios/horizontal/test_plugins.py"
MATRIX = "tests/matrix/test_matrix.py"
READ = f"{MATRIX}::test_each_program_reads_the_settings_of_its_cells"
GIVEN = f"{MATRIX}::test_settings_of_the_process_itself_are_read_by_the_command"
INSTALLED = f"{MATRIX}::test_a_value_of_the_chart_reaches_the_programs_of_its_row"

ACCOUNTS = "tests/real/install/test_accounts.py"
CROSS = "tests/scenarios/horizontal/test_cross.py"
ECONOMY = "tests/scenarios/horizontal/test_economy.py"
COSTS = "tests/scenarios/horizontal/test_costs.py"
GATES = "tests/scenarios/horizontal/test_gates.py"
LOOKING = "tests/scenarios/horizontal/test_published_settings.py"
ESTIMATORS = "tests/scenarios/vertical/test_estimators.py"
SIZES = "tests/scenarios/vertical/test_published_settings.py"
DRY_RUN = "tests/scenarios/vertical/test_dry_run.py"
EXPLAIN = "tests/unit/cli/explain/test_command.py"
SIMULATE = "tests/unit/cli/commands/test_simulate.py"
TOP = "tests/unit/cli/top/test_command.py"
VALIDATE = "tests/unit/cli/commands/test_validate.py"
CONVERT = "tests/unit/cli/commands/test_convert.py"
PLAY = "tests/unit/backtest/test_backtest.py"
STORIES = "tests/unit/cli/stories/test_stories.py"
PAGE = "tests/dashboard/test_component.py"
ADAPTER = "tests/adapter/test_namespaces.py"
NAMESPACES = "tests/unit/operator/vertical/test_namespaces.py"
EXCLUDED = "tests/scenarios/vertical/test_excluded_namespaces.py"
FAULTS = "tests/faults/horizontal"
PUBLISHED = "tests/unit/operator/settings/test_published.py"


@dataclass(frozen=True)
class Row:
    """Settings that every program treats alike, with one cell per program."""

    settings: tuple[str, ...]
    run: str
    """The components that read them, by name; `process`: the command does, before any component is made."""
    rest: str
    """Why all other programs have nothing to do with them."""
    shown: dict[str, str] = field(default_factory=dict)
    """The test that shows it, by program; of a component that is not named here, the recording of its reads."""
    open: dict[str, str] = field(default_factory=dict)
    """The issue, where a program does not honour them yet."""

    def cell(self, column: str) -> str:
        """Return a test, `open: …` or `not applicable: …`."""
        if column in self.open:
            return f"open: {self.open[column]}"
        if column in self.shown:
            return self.shown[column]
        if column in self.run.split():
            return READ
        if self.run == "process" and column in RUN:
            return GIVEN
        return f"not applicable: {self.rest}"


ALL_LOOPS = "horizontal recommender updater admission roles"
EVERY = f"{ALL_LOOPS} dashboard adapter"
_OFFLINE = "the other commands read files or one object and run no loop"
_HPA_ONLY = "VPAs, metrics of others and files have no such number"
_NUMBERS = {
    "early": f"{ECONOMY}::test_usage_that_jumps_between_two_rounds_is_acted_on_within_a_look",
    "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
    "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
    "page": f"{EXPLAIN}::test_the_operators_decision_is_told_as_it_was_made",
    "simulate": f"{SIMULATE}::test_it_decides_by_the_settings_of_the_operators_lease",
    "replay": f"{SIMULATE}::test_the_records_of_the_changes_can_be_replayed",
}
_SIZES = {
    "dashboard": f"{PUBLISHED}::test_sizes_go_by_the_recommender_and_updates_by_the_updater",
    "explain": f"{SIZES}::test_a_vpa_is_derived_by_its_recommenders_numbers",
}
_UPDATES = {
    "dashboard": f"{PUBLISHED}::test_sizes_go_by_the_recommender_and_updates_by_the_updater",
    "explain": f"{SIZES}::test_a_pod_waits_for_as_many_replicas_as_the_updater_wants",
}
_OWN_PROGRAM = "only this program does it, and no decision depends on it"

FLAGS: tuple[Row, ...] = (
    Row(
        ("--components",),
        EVERY,
        "each command is one program, and the page shows what runs",
        {"explain": f"{PUBLISHED}::test_the_settings_of_the_operator_that_decides_are_taken"},
    ),
    Row(
        ("--watch-namespaces",),
        EVERY,
        "files have no cluster, and records and the lab are of one process",
        {
            "horizontal": f"{ACCOUNTS}::test_the_guard_against_the_clusters_own_controller_works_with_these_rights",
            "early": f"{ACCOUNTS}::test_the_horizontal_account_scales_a_deployment",
            "recommender": f"{ACCOUNTS}::test_the_recommender_account_recommends_and_keeps_history",
            "updater": f"{ACCOUNTS}::test_the_updater_account_evicts_labels_and_probes_but_changes_no_image",
            "admission": f"{NAMESPACES}::test_n11_all_webhooks_are_called_for_the_namespaces_that_we_work_in",
            "adapter": f"{ADAPTER}::test_pods_of_watched_namespaces_are_known_with_rights_there_only",
            "dashboard": f"{ACCOUNTS}::test_the_dashboard_account_shows_each_viewer_their_own_namespace_and_writes_nothing",
            "explain": f"{LOOKING}::test_an_operators_dry_run_and_its_namespaces_are_told",
            "top": f"{TOP}::test_what_the_operator_leaves_alone_is_noted",
        },
    ),
    Row(
        ("--plugins",),
        EVERY,
        "names in the cluster load no code, so commands take names of their own",
        {
            "horizontal": f"{PLUGINS}::test_a_policy_adds_pods_by_its_table",
            "recommender": f"{ESTIMATORS}::test_a_failing_estimator_says_so_on_its_vpa_and_stops_no_other",
            "adapter": "tests/adapter/test_sql_queue.py::test_the_rows_of_a_queue_are_a_metric_and_a_lost_database_fails_this_metric_alone",
            "dashboard": f"{PAGE}::test_alone_it_says_why_a_plugin_has_no_answer_here",
            "simulate": "tests/unit/backtest/test_plugins.py::test_simulate_compares_a_policy_with_none",
            "replay": "tests/unit/backtest/test_plugins.py::test_simulate_compares_a_policy_with_none",
        },
    ),
    Row(
        ("--feature-gates",),
        "horizontal recommender updater admission roles dashboard",
        "the rows of the gates say who honours which",
        {
            "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
            "page": f"{EXPLAIN}::test_with_gates_it_is_made_again_with_these",
            "simulate": f"{SIMULATE}::test_it_decides_by_the_settings_of_the_operators_lease",
            "validate": f"{VALIDATE}::test_gates_decide_what_is_accepted",
        },
    ),
    Row(
        ("--compat",),
        "horizontal recommender updater admission roles dashboard",
        "metrics are served, files converted and objects shown as they are",
        {
            "horizontal": f"{LOOKING}::test_rules_of_the_command_line_replace_the_operators_and_are_named",
            "early": f"{ECONOMY}::test_nobody_looks_where_it_is_off",
            "recommender": "tests/unit/operator/settings/test_settings.py::test_a_span_of_checkpoints_that_was_given_counts_with_compat_too",
            "explain": f"{LOOKING}::test_rules_of_the_command_line_replace_the_operators_and_are_named",
            "page": f"{EXPLAIN}::test_with_compat_the_operators_decision_is_made_again_as_upstream_would",
            "simulate": f"{PLAY}::test_upstreams_rules_can_be_tried_too",
            "replay": f"{PLAY}::test_every_change_can_be_replayed_to_the_byte",
        },
    ),
    Row(
        ("--dry-run",),
        EVERY,
        "these commands write nothing anyway",
        {
            "horizontal": f"{CROSS}::test_a_dry_run_of_the_process_writes_no_status",
            "early": f"{CROSS}::test_a_dry_run_of_the_process_writes_no_status",
            "recommender": f"{DRY_RUN}::test_rh3_every_component_in_a_dry_run_of_an_hour_writes_the_same",
            "updater": f"{DRY_RUN}::test_rh3_a_dry_run_sends_events_only",
            "admission": f"{DRY_RUN}::test_rh3_reviews_are_answered_without_a_patch_and_the_probe_not_at_all",
            "roles": f"{DRY_RUN}::test_rh3_every_component_in_a_dry_run_of_an_hour_writes_the_same",
            "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
            "explain": f"{LOOKING}::test_an_operators_dry_run_and_its_namespaces_are_told",
            "page": f"{LOOKING}::test_the_page_of_an_operator_shows_the_kinds_that_it_acts_on_and_its_dry_run",
            "top": f"{TOP}::test_a_dry_run_of_the_operator_is_seen_on_what_it_acts_on",
        },
    ),
    Row(
        ("--kubeconfig", "--context", "--kube-api-qps", "--kube-api-burst", "--log-format", "--v"),
        "process",
        "commands that ask once take kubectl's own options, and print instead of logging",
        {"adapter": f"{ADAPTER}::test_the_command_takes_the_settings_of_every_program"},
    ),
    Row(("--bind-address", "--port"), EVERY, "the commands serve no port of their own"),
    Row(
        ("--records",),
        "horizontal dashboard",
        "only decisions about HPAs are kept as records",
        {"replay": f"{SIMULATE}::test_the_records_of_the_changes_can_be_replayed"},
    ),
    Row(
        ("--native-hpas", "--own-hpas"),
        "horizontal dashboard",
        "VPAs and files have no two kinds",
        {
            "early": f"{ECONOMY}::test_usage_that_jumps_between_two_rounds_is_acted_on_within_a_look",
            "dashboard": f"{PAGE}::test_alone_it_watches_the_kinds_that_the_operator_acts_on",
            "explain": f"{LOOKING}::test_native_hpas_are_rivals_where_the_operator_acts_on_them",
            "page": f"{LOOKING}::test_the_page_of_an_operator_shows_the_kinds_that_it_acts_on_and_its_dry_run",
            "top": f"{TOP}::test_what_the_operator_leaves_alone_is_noted",
        },
    ),
    Row(
        ("--horizontal-pod-autoscaler-sync-period",),
        "horizontal dashboard",
        "one decision, or a file, has no period",
        {
            "early": f"{ECONOMY}::test_whoever_was_scaled_early_waits_a_whole_period",
            "dashboard": f"{PAGE}::test_beside_an_operator_it_says_who_decides",
            "simulate": f"{SIMULATE}::test_it_decides_by_the_settings_of_the_operators_lease",
        },
    ),
    Row(
        ("--metrics-look-period",),
        "horizontal dashboard",
        "nothing is looked at between two syncs of a simulation, which says so; one decision has no look",
        {"early": f"{ECONOMY}::test_nobody_looks_where_it_is_off"},
    ),
    Row(
        ("--status-max-age", "--status-visible-change"),
        "horizontal dashboard",
        "only the operator writes statuses; the dashboard builds the same controller and writes nothing",
        {"horizontal": f"{COSTS}::test_small_moves_are_written_once_a_minute_and_shown_at_once"},
    ),
    Row(
        (
            "--horizontal-pod-autoscaler-tolerance",
            "--horizontal-pod-autoscaler-downscale-stabilization",
            "--horizontal-pod-autoscaler-cpu-initialization-period",
            "--horizontal-pod-autoscaler-initial-readiness-delay",
        ),
        "horizontal dashboard",
        _HPA_ONLY,
        _NUMBERS,
    ),
    Row(
        ("--metrics-max-age", "--metrics-max-age-windows", "--metrics-max-ahead"),
        "horizontal dashboard",
        _HPA_ONLY,
        {name: test for name, test in _NUMBERS.items() if name != "simulate"}
        | {
            "horizontal": f"{FAULTS}/test_f31_to_f45_metrics.py::test_f38_a_source_that_is_minutes_behind_can_be_allowed"
        },
    ),
    Row(
        ("--concurrent-horizontal-pod-autoscaler-syncs", "--owner-cache-ttl"),
        "horizontal dashboard",
        _OWN_PROGRAM,
    ),
    Row(
        ("--metrics-deadline", "--metrics-max-bytes"),
        "horizontal recommender dashboard",
        "the other loops read no metrics; the adapter has `sourceDeadline`; a command that asks once is ended by its user",
        {
            "horizontal": f"{FAULTS}/test_f31_to_f45_metrics.py::test_f42_two_hundred_hpas_on_a_broken_source_delay_nobody_else"
        },
    ),
    Row(("--adapter-config",), "adapter", "only the adapter serves metrics; `trimtab adapter` has --config"),
    Row(
        (
            "--leader-elect",
            "--leader-elect-lease-duration",
            "--leader-elect-renew-deadline",
            "--leader-elect-retry-period",
            "--leader-elect-resource-name",
        ),
        ALL_LOOPS,
        "adapter and dashboard serve in every copy; commands hold no Lease",
        {
            "early": "tests/faults/horizontal/test_hand_over.py::test_a_decision_under_way_when_the_lease_is_lost_freezes_no_memory",
            "page": f"{LOOKING}::test_a_copy_that_stands_by_names_the_leader",
        },
    ),
    Row(
        ("--leader-elect-resource-namespace",),
        f"{ALL_LOOPS} dashboard",
        "the adapter holds no Lease; simulate reads a Lease from a file",
        {
            "explain": f"{LOOKING}::test_settings_change_hands_with_the_lease",
            "top": f"{TOP}::test_what_the_operator_leaves_alone_is_noted",
        },
    ),
    Row(
        ("--shards",),
        EVERY,
        "commands decide about one object, or show all",
        {
            "early": "tests/scenarios/horizontal/test_sharding.py::test_three_copies_share_evenly_and_one_killed_in_mid_cycle_is_replaced",
            "explain": f"{LOOKING}::test_copies_that_share_publish_on_the_leases_of_their_shards",
            "page": "tests/scenarios/horizontal/test_sharding.py::test_the_wrong_copy_says_which_one_to_ask",
        },
    ),
    Row(
        (
            "--recommendation-margin-fraction",
            "--target-cpu-percentile",
            "--recommendation-lower-bound-cpu-percentile",
            "--recommendation-upper-bound-cpu-percentile",
            "--target-memory-percentile",
            "--recommendation-lower-bound-memory-percentile",
            "--recommendation-upper-bound-memory-percentile",
            "--confidence-interval-cpu",
            "--confidence-interval-memory",
            "--cpu-histogram-decay-half-life",
            "--memory-histogram-decay-half-life",
            "--memory-aggregation-interval",
            "--memory-aggregation-interval-count",
            "--oom-bump-up-ratio",
            "--oom-min-bump-up-bytes",
            "--round-cpu-millicores",
            "--round-memory-bytes",
            "--humanize-memory",
            "--cpu-integer-post-processor-enabled",
            "--pod-recommendation-min-cpu-millicores",
            "--pod-recommendation-min-memory-mb",
            "--container-recommendation-max-allowed-cpu",
            "--container-recommendation-max-allowed-memory",
        ),
        "recommender",
        "only sizes of pods depend on them",
        _SIZES
        | {
            "recommender": "tests/unit/operator/vertical/test_estimation.py::test_a_flag_changes_the_amounts_that_it_names"
        },
    ),
    Row(
        ("--cap-to-largest-node",),
        "recommender",
        "only sizes of pods depend on it",
        _SIZES
        | {
            "recommender": "tests/scenarios/vertical/test_replacements.py::test_a_recommendation_may_be_capped_to_the_largest_node"
        },
    ),
    Row(
        ("--replacement-check",),
        "updater",
        "it creates a replacement in a dry run before an eviction; those who look create nothing",
        {
            "updater": "tests/scenarios/vertical/test_replacements.py::test_rv_h2_a_pod_whose_template_is_refused_by_now_is_not_evicted"
        },
    ),
    Row(
        ("--node-fit",),
        "updater",
        "only evictions depend on the room of nodes",
        {
            "updater": "tests/scenarios/vertical/test_replacements.py::test_f2_a_pod_whose_replacement_fits_on_no_node_is_not_evicted",
            "dashboard": "tests/scenarios/vertical/test_replacements.py::test_page_and_explain_foresee_what_an_updater_does_that_does_not_know_the_free_room",
            "explain": "tests/scenarios/vertical/test_replacements.py::test_page_and_explain_foresee_what_an_updater_does_that_does_not_know_the_free_room",
        },
    ),
    Row(
        ("--recommender-name",),
        "recommender",
        "only VPAs name a recommender",
        _SIZES
        | {
            "explain": f"{SIZES}::test_nothing_is_derived_for_the_vpa_of_another_recommender",
            "dashboard": f"{SIZES}::test_nothing_is_derived_for_the_vpa_of_another_recommender",
        },
    ),
    Row(
        (
            "--memory-saver",
            "--recommender-interval",
            "--checkpoints-interval",
            "--checkpoints-timeout",
            "--checkpoints-gc-interval",
            "--update-worker-count",
        ),
        "recommender",
        _OWN_PROGRAM,
        {
            "recommender": "tests/unit/operator/settings/test_settings.py::test_a_span_of_checkpoints_that_was_given_counts_with_compat_too"
        },
    ),
    Row(
        (
            "--storage",
            "--prometheus-address",
            "--prometheus-insecure",
            "--prometheus-bearer-token-file",
            "--prometheus-bearer-token",
            "--username",
            "--password",
            "--prometheus-query-timeout",
            "--history-length",
            "--history-resolution",
            "--history-cpu-metric",
            "--history-memory-metric",
            "--prometheus-cadvisor-job-name",
            "--container-namespace-label",
            "--container-pod-name-label",
            "--container-name-label",
            "--metric-for-pod-labels",
            "--pod-label-prefix",
            "--pod-namespace-label",
            "--pod-name-label",
        ),
        "recommender",
        "explain and the dashboard derive sizes from checkpoints, and vertical.md says so",
    ),
    Row(
        (
            "--min-replicas",
            "--eviction-tolerance",
            "--pod-update-threshold",
            "--in-recommendation-bounds-eviction-lifetime-threshold",
            "--evict-after-oom-threshold",
            "--in-place-skip-disruption-budget",
        ),
        "updater",
        "only updates of pods depend on them",
        _UPDATES,
    ),
    Row(
        (
            "--max-evictions-per-minute",
            "--max-evicted-share-per-minute",
            "--max-missing-pods",
            "--fruitless-evictions",
            "--fruitless-eviction-pause",
            "--refused-eviction-backoff",
            "--refused-eviction-backoff-limit",
        ),
        "updater",
        "they count what was done before, which only the updater knows; explain tells what would happen without them",
    ),
    Row(
        (
            "--eviction-rate-limit",
            "--eviction-rate-burst",
            "--updater-interval",
            "--admission-check",
            "--admission-controller-status-lease-name",
            "--admission-controller-status-lease-namespace",
            "--admission-controller-status-lease-timeout",
        ),
        "updater",
        _OWN_PROGRAM,
        {"updater": "tests/scenarios/vertical/test_rate_limit.py::test_resizes_keep_to_the_rate"},
    ),
    Row(
        ("--ignored-vpa-object-namespaces",),
        "recommender updater admission roles",
        "it is about VPAs and their pods only",
        {
            "recommender": f"{EXCLUDED}::test_in_an_ignored_namespace_nothing_is_written_at_all",
            "updater": f"{NAMESPACES}::test_updater_and_admission_leave_the_same_namespaces_alone",
            "admission": f"{NAMESPACES}::test_n11_all_webhooks_are_called_for_the_namespaces_that_we_work_in",
            "roles": "tests/scenarios/vertical/test_roles_from_leases.py::test_n22_pods_of_ignored_namespaces_get_no_role",
            "explain": f"{SIZES}::test_a_pod_of_an_ignored_namespace_is_left_alone",
            "dashboard": f"{SIZES}::test_a_pod_of_an_ignored_namespace_is_left_alone",
        },
    ),
    Row(
        ("--include-kube-system", "--namespace"),
        "recommender updater admission roles",
        "it is about VPAs and their pods only",
        {
            "recommender": f"{EXCLUDED}::test_in_our_own_namespace_a_vpa_recommends_says_that_it_changes_nothing_and_evicts_nobody",
            "updater": f"{NAMESPACES}::test_updater_and_admission_leave_the_same_namespaces_alone",
            "admission": f"{NAMESPACES}::test_updater_and_admission_leave_the_same_namespaces_alone",
            "explain": f"{SIZES}::test_a_pod_of_an_ignored_namespace_is_left_alone",
            "dashboard": f"{SIZES}::test_a_pod_of_an_ignored_namespace_is_left_alone",
        },
    ),
    Row(
        (
            "--webhook-failure-policy-fail",
            "--webhook-naming",
            "--webhook-labels",
            "--min-tls-version",
            "--tls-ciphers",
            "--status-lease-name",
            "--status-lease-namespace",
            "--status-lease-update-interval",
            "--webhook-service",
            "--webhook-url",
            "--webhook-port",
            "--webhook-address",
            "--webhook-timeout-seconds",
            "--register-webhook",
            "--webhook-registration",
            "--tls-cert-file",
            "--tls-private-key-file",
            "--client-ca-file",
        ),
        "admission",
        "only the webhook is served and registered by them",
    ),
    Row(
        ("--max-allowed-cpu-boost",),
        "admission",
        "only pods that start are boosted; explain tells of running ones",
        {"admission": "tests/scenarios/vertical/test_admission.py::test_a_startup_boost_has_a_most"},
    ),
    Row(
        (
            "--dashboard-address",
            "--dashboard-port",
            "--dashboard-hosts",
            "--dashboard-login",
            "--dashboard-address-file",
            "--dashboard-cert-file",
            "--dashboard-private-key-file",
        ),
        "dashboard",
        "only the page is served by them",
        {"dashboard": f"{PAGE}::test_settings_that_would_expose_the_page_are_refused"},
    ),
)

_HPA_GATE = "VPAs, roles and metrics know no such field"
_VPA_GATE = "HPAs, roles and metrics know no such field"
GATES_ROWS: tuple[Row, ...] = (
    Row(
        ("HPASelectionStrategy",),
        "",
        _HPA_GATE,
        {
            "horizontal": f"{GATES}::test_sel_g2_on_off_on_needs_no_edit",
            "early": f"{ECONOMY}::test_usage_that_jumps_is_acted_on_within_a_look_by_owner_too",
            "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
            "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
            "page": f"{EXPLAIN}::test_with_gates_it_is_made_again_with_these",
            "simulate": f"{PLAY}::test_only_its_own_pods_count_by_owner",
            "replay": f"{PLAY}::test_every_change_can_be_replayed_to_the_byte",
            "validate": f"{VALIDATE}::test_what_a_closed_gate_drops_is_a_warning",
            "lab": f"{STORIES}::test_only_the_workload_that_counts_by_label_scales_for_the_job",
        },
    ),
    Row(
        ("HPAConfigurableTolerance",),
        "",
        _HPA_GATE,
        {
            "horizontal": f"{GATES}::test_tol_g1_off_and_on_again_in_the_operator",
            "early": f"{ECONOMY}::test_usage_within_its_band_is_looked_at_and_nothing_else",
            "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
            "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
            "page": f"{EXPLAIN}::test_with_gates_it_is_made_again_with_these",
            "simulate": f"{PLAY}::test_a_tolerance_of_its_own_makes_the_difference",
            "replay": f"{PLAY}::test_every_change_can_be_replayed_to_the_byte",
            "validate": f"{VALIDATE}::test_what_a_closed_gate_drops_is_a_warning",
            "lab": f"{STORIES}::test_the_tight_tolerance_acts_where_the_default_does_not",
        },
    ),
    Row(
        ("HPAScaleToZero",),
        "",
        _HPA_GATE,
        {
            "horizontal": f"{GATES}::test_skew_a_the_operator_without_the_gate_does_not_go_to_a_zero_it_cannot_leave",
            "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
            "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
            "page": f"{EXPLAIN}::test_with_gates_it_is_made_again_with_these",
            "simulate": f"{PLAY}::test_a_queue_goes_to_zero_and_wakes_its_worker",
            "replay": f"{PLAY}::test_every_change_can_be_replayed_to_the_byte",
            "validate": f"{VALIDATE}::test_gates_decide_what_is_accepted",
            "lab": f"{STORIES}::test_the_mailer_goes_to_zero_and_comes_back",
        },
    ),
    Row(
        ("VPASelectorRefinement",),
        "",
        "HPAs and metrics know no scopes; labels of roles are of use without scopes, too",
        {
            "recommender": "tests/scenarios/vertical/test_roles_end_to_end.py::test_scp_n4_two_vpas_of_one_workload_share_one_budget",
            "updater": "tests/scenarios/vertical/test_roles_end_to_end.py::test_scp_n4_two_vpas_of_one_workload_share_one_budget",
            "admission": "tests/unit/decide/vertical/control/test_selector_hash.py::test_admission_applies_what_was_learnt_under_the_same_scope",
            "explain": f"{SIZES}::test_a_scope_by_node_is_named_where_nodes_cannot_be_listed",
            "dashboard": "tests/dashboard/test_vertical.py::test_who_controls_which_pod_and_what_comes_next_is_told",
            "validate": f"{VALIDATE}::test_gates_decide_what_is_accepted",
            "lab": f"{STORIES}::test_the_leader_gets_the_leaders_size_in_place",
        },
    ),
    Row(
        ("PodLevelResources",),
        "",
        "files and metrics have no running pods; sizes always obey what a pod's own resources say, gate or not",
        {
            "horizontal": "tests/unit/operator/pods/test_decoder.py::test_the_facts_are_those_of_the_whole_pod",
        },
    ),
    Row(
        ("PerVPAConfig",),
        "",
        _VPA_GATE,
        {
            "recommender": "tests/unit/decide/vertical/cluster_state/test_containers.py::test_policies_set_the_oom_bump_and_the_memory_window_per_vpa",
            "validate": f"{VALIDATE}::test_gates_decide_what_is_accepted",
        },
    ),
    Row(
        ("InPlace", "CPUStartupBoost"),
        "",
        _VPA_GATE,
        {
            "updater": "tests/scenarios/vertical/test_rate_limit.py::test_resizes_keep_to_the_rate",
            "admission": "tests/scenarios/vertical/test_admission.py::test_a_startup_boost_has_a_most",
            "validate": f"{VALIDATE}::test_gates_decide_what_is_accepted",
        },
    ),
)
"""What components do with a gate is not a read of its own: `--feature-gates` is one setting."""

_STATE = "it is written and read by this program alone, and no user sets it"
ANNOTATIONS: tuple[Row, ...] = (
    Row(
        ("autoscaling.trimtab.dev/mode",),
        "",
        "VPAs have update modes; a simulation carries every decision out, and a record keeps whether it was",
        {
            "horizontal": f"{CROSS}::test_a_misspelt_annotation_holds_and_says_so",
            "early": f"{CROSS}::test_a_dry_run_tells_and_does_not_scale",
            "dashboard": f"{PAGE}::test_alone_it_decides_for_the_page_and_writes_nothing",
            "explain": f"{CROSS}::test_a_misspelt_annotation_holds_and_says_so",
            "page": f"{CROSS}::test_a_misspelt_annotation_holds_and_says_so",
            "top": f"{TOP}::test_a_dry_run_is_seen",
            "validate": f"{VALIDATE}::test_a_misspelt_annotation_is_doubted",
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/selection-strategy",),
        "",
        "our own kind has a field; VPAs and metrics count no pods",
        {
            "horizontal": f"{CROSS}::test_a_misspelt_annotation_holds_and_says_so",
            "early": f"{ECONOMY}::test_usage_that_jumps_is_acted_on_within_a_look_by_owner_too",
            "explain": f"{CROSS}::test_a_misspelt_annotation_holds_and_says_so",
            "top": f"{TOP}::test_a_misspelt_annotation_is_seen_with_its_reason",
            "simulate": f"{SIMULATE}::test_annotations_of_native_hpas_count_as_in_the_operator",
            "validate": f"{VALIDATE}::test_a_misspelt_annotation_is_doubted",
            "convert": f"{CONVERT}::test_every_example_survives_v1_and_back",
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/on-loss", "autoscaling.trimtab.dev/max-age-seconds"),
        "",
        "our own kind has fields; VPAs and served metrics have no such policy",
        {
            "horizontal": "tests/scenarios/horizontal/test_loss.py::test_an_ignored_metric_leaves_the_decision_to_the_others",
            "simulate": f"{SIMULATE}::test_annotations_of_native_hpas_count_as_in_the_operator",
            "convert": f"{CONVERT}::test_a_loss_policy_goes_into_an_annotation_that_kubernetes_keeps_and_comes_back",
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/replica-policies",),
        "",
        "our own kind has a field; VPAs and served metrics have no replicas",
        {
            "horizontal": f"{PLUGINS}::test_a_policy_adds_pods_by_its_table",
            "convert": "tests/unit/model/hpa/test_replica_policies.py::test_a_policy_goes_into_the_annotation_of_a_native_hpa_and_back",
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/exact-metrics", "autoscaling.trimtab.dev/exact-current-metrics"),
        "",
        "only conversion to v1 and back writes and reads them",
        {"convert": f"{CONVERT}::test_every_example_survives_v1_and_back"},
    ),
    Row(
        ("roles.trimtab.dev/lease", "roles.trimtab.dev/label", "roles.trimtab.dev/others"),
        "",
        "roles declares labels from Leases, and nothing else reads the declaration; validate skips pod templates",
        {
            "roles": "tests/scenarios/vertical/test_roles_from_leases.py::test_n22_pods_of_ignored_namespaces_get_no_role"
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/memory",),
        "",
        _STATE,
        {
            "horizontal": "tests/faults/horizontal/test_hand_over.py::test_a_decision_under_way_when_the_lease_is_lost_freezes_no_memory"
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/clock-set",),
        "",
        "the holder of a Lease says by how much its clock was set, for whoever takes over its memory",
        {
            "horizontal": "tests/faults/horizontal/test_hand_overs.py::test_windows_rates_and_zeros_hold_through_every_hand_over"
        },
    ),
    Row(
        ("autoscaling.trimtab.dev/settings", "autoscaling.trimtab.dev/released-by"),
        "",
        "the holder of a Lease writes them",
        {
            "horizontal": f"{LOOKING}::test_settings_change_hands_with_the_lease",
            "explain": f"{LOOKING}::test_explain_decides_by_the_operators_numbers",
            "dashboard": f"{PAGE}::test_alone_it_goes_by_the_settings_of_the_operator_that_acts",
            "top": f"{TOP}::test_what_the_operator_leaves_alone_is_noted",
            "simulate": f"{SIMULATE}::test_it_decides_by_the_settings_of_the_operators_lease",
        },
    ),
    Row(
        (
            "trimtab.dev/admission-probe",
            "trimtab.dev/admitted",
            "trimtab.dev/held-back",
            "trimtab.dev/estimate",
            "trimtab.dev/memory-windows",
            "trimtab.dev/replacement-refused",
            "trimtab.dev/resize",
            "trimtab.dev/original-resources",
        ),
        "",
        _STATE,
        {
            "admission": f"{ACCOUNTS}::test_the_updater_account_evicts_labels_and_probes_but_changes_no_image",
            "updater": f"{ACCOUNTS}::test_the_updater_account_evicts_labels_and_probes_but_changes_no_image",
            "recommender": f"{ACCOUNTS}::test_the_recommender_account_recommends_and_keeps_history",
        },
    ),
    Row(
        ("lab.trimtab.dev/cpu",),
        "",
        "only the lab makes load; elsewhere pods have their own",
        {
            "lab": "tests/unit/lab/load/test_load.py::test_an_annotation_sets_the_load_of_a_workload_that_no_plan_names"
        },
    ),
)


ALL = "horizontal recommender updater admission adapter dashboard"
"""The Deployments of the chart; roles run in the updater's."""
LOOPS = "horizontal recommender updater admission"
_SAME = "the other programs are not about this"

VALUES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            "image.repository",
            "image.tag",
            "image.pullPolicy",
            "image.digest",
            "imagePullSecrets",
            "nodeSelector",
            "tolerations",
        ),
        (ALL, ""),
    ),
    **dict.fromkeys(
        (
            "affinity",
            "topologySpreadConstraints",
            "priorityClassName",
            "commonLabels",
            "podLabels",
            "podAnnotations",
            "podSecurityContext",
            "securityContext",
        ),
        (ALL, ""),
    ),
    "replicas": (f"{LOOPS} adapter", "sessions of the dashboard live in the memory of its one copy"),
    "featureGates": (f"{LOOPS} dashboard", "the adapter serves values, and no gate is about them"),
    "compat": (f"{LOOPS} dashboard", "the adapter serves values as any adapter does"),
    "watchNamespaces": (ALL, ""),
    "plugins": (ALL, ""),
    "dryRun": (f"{LOOPS} dashboard", "the adapter writes nothing"),
    "logFormat": (ALL, ""),
    "tokenSecret": (
        f"{LOOPS} dashboard",
        "the adapter lets the API server say who asks for its metrics, by TokenReview and SubjectAccessReview",
    ),
    "scalable": (f"{LOOPS} dashboard", "the adapter asks for no scale"),
    "horizontal.nativeHpas": ("horizontal dashboard", _SAME),
    "horizontal.watchNodes": ("horizontal", "only the operator calls pod filters"),
    "horizontal.syncPeriod": ("horizontal", "the dashboard follows the settings on the operator's Lease"),
    "horizontal.metricsMaxAge": ("horizontal dashboard", _SAME),
    "horizontal.statusMaxAge": ("horizontal", "the dashboard writes no status"),
    "horizontal.shards": ("horizontal", _SAME),
    "horizontal.customMetrics": ("horizontal dashboard", _SAME),
    "horizontal.externalMetrics": ("horizontal dashboard", _SAME),
    "vertical.includeKubeSystem": (
        "recommender updater admission",
        "the dashboard follows the settings on the operator's Lease",
    ),
    "vertical.ignoredNamespaces": (
        "recommender updater admission",
        "the dashboard follows the settings on the operator's Lease",
    ),
    "vertical.recommender.shards": ("recommender", _SAME),
    "vertical.recommender.name": ("recommender", _SAME),
    "vertical.updater.minReplicas": ("updater", "the dashboard follows the settings on the operator's Lease"),
    "vertical.updater.maxEvictionsPerMinute": (
        "updater",
        "the dashboard follows the settings on the operator's Lease",
    ),
    "vertical.updater.admissionCheck": ("updater", _SAME),
    "vertical.updater.proveReplacements": ("updater", _SAME),
    "vertical.updater.nodeFit": ("updater", _SAME),
    "vertical.admission.timeoutSeconds": ("admission", _SAME),
    "vertical.admission.failurePolicy": ("admission", _SAME),
    "vertical.admission.registersItself": ("admission", _SAME),
    "vertical.admission.statusLease.name": ("updater admission", _SAME),
    "vertical.admission.statusLease.namespace": ("updater admission", _SAME),
    "vertical.admission.certificateSecret": ("admission", _SAME),
    **{
        f"{where}.{what}": (where.rpartition(".")[2], _SAME)
        for where in (
            "horizontal",
            "vertical.recommender",
            "vertical.updater",
            "vertical.admission",
            "adapter",
            "dashboard",
        )
        for what in (
            "resources",
            "extraArgs",
            "extraEnv",
            "extraEgress",
            "serviceAccount.annotations",
            "podLabels",
            "podAnnotations",
            "podSecurityContext",
            "securityContext",
            "nodeSelector",
            "tolerations",
            "affinity",
            "topologySpreadConstraints",
        )
    },
    **dict.fromkeys(
        (
            "adapter.custom",
            "adapter.external",
            "adapter.prometheus",
            "adapter.prometheusPort",
            "adapter.rules",
            "adapter.configuration",
        ),
        ("adapter", _SAME),
    ),
    **dict.fromkeys(
        ("adapter.certificateSecret", "adapter.caBundle", "adapter.injectCaFrom"), ("adapter", _SAME)
    ),
    **dict.fromkeys(
        ("dashboard.hosts", "dashboard.certificateSecret", "dashboard.ingressNamespace"), ("dashboard", _SAME)
    ),
    **dict.fromkeys(("networkPolicy.apiServerCidrs", "networkPolicy.apiServerPorts"), (ALL, "")),
    "networkPolicy.enabled": (ALL, ""),
    "networkPolicy.monitoringNamespace": (
        f"{LOOPS} dashboard",
        "the adapter has no health port: its metrics are on its API port, which asks who comes",
    ),
    "horizontal.enabled": ("horizontal", _SAME),
    "vertical.enabled": ("recommender updater admission", _SAME),
    "adapter.enabled": ("adapter", _SAME),
    "dashboard.enabled": ("dashboard", _SAME),
    **dict.fromkeys(
        (
            "namespace.create",
            "crds.install",
            "serviceMonitor.enabled",
            "serviceMonitor.interval",
            "prometheusRule.enabled",
            "grafanaDashboard.enabled",
            "kubeStateMetrics.enabled",
            "kubeStateMetrics.namespace",
            "kubeStateMetrics.serviceAccount",
        ),
        ("", "it installs objects beside the programs, and no program reads it"),
    ),
}
"""The programs whose objects change with each value of the chart, and why the others' do not."""
