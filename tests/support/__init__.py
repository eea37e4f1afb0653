"""What tests of several tiers share: the transport that breaks requests, virtual time, builders of objects, a lab in memory."""
