"""Tempest scenarios for Allotment: preemptible servers leave when a reservation starts."""
