"""Replay and backtest on the production decisions with a virtual clock."""
