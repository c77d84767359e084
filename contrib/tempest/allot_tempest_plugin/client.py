"""A client of the reservation API: leases, and hosts for administrators."""

import json
from urllib.parse import urlencode

from tempest.lib.common import rest_client


class ReservationClient(rest_client.RestClient):
    """Leases and hosts. The address in the catalog contains the version of the API."""

    def create_lease(self, **lease):
        """Creates a lease. The answer contains its reservations."""
        response, body = self.post("leases", json.dumps(lease))
        return self._read(201, response, body)["lease"]

    def show_lease(self, lease):
        """A lease of the project."""
        response, body = self.get(f"leases/{lease}")
        return self._read(200, response, body)["lease"]

    def delete_lease(self, lease):
        """Deletes a lease in any state."""
        response, _ = self.delete(f"leases/{lease}")
        self.expected_success([200, 202, 204], response.status)

    def list_hosts(self):
        """All hosts of the service."""
        response, body = self.get("os-hosts")
        return self._read(200, response, body)["hosts"]

    def list_allocations(self, reservation):
        """Hosts of a reservation: entries with a host's identifier in `resource_id`."""
        response, body = self.get("os-hosts/allocations?" + urlencode({"reservation_id": reservation}))
        return self._read(200, response, body)["allocations"]

    def _read(self, status, response, body):
        self.expected_success(status, response.status)
        return json.loads(body)
