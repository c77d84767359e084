"""Logs in with Apache Libcloud and prints the leases and hosts that it lists, as JSON.

Arguments: the service's address, user, password, project.
"""

import json
import sys

from libcloud.compute.drivers.openstack import OpenStack_2_NodeDriver

url, user, password, project = sys.argv[1:]
driver = OpenStack_2_NodeDriver(
    user,
    password,
    ex_tenant_name=project,
    ex_domain_name="Default",
    ex_force_auth_url=url + "/identity",
    ex_force_auth_version="3.x_password",
    ex_force_base_url=url + "/v1",
)
leases = [[lease.id, lease.name, lease.status] for lease in driver.ex_list_leases()]
hosts = [host.hypervisor_hostname for host in driver.ex_list_hosts()]
json.dump({"leases": leases, "hosts": hosts}, sys.stdout)
