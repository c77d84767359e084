"""The options of the plugin in tempest.conf."""

from oslo_config import cfg

SERVICE = cfg.BoolOpt("allot", default=True, help="Whether Allotment is expected to be available")

GROUP = cfg.OptGroup(name="allot", title="Allotment")

OPTIONS = [
    cfg.StrOpt("catalog_type", default="reservation", help="Type of the service in the catalog"),
    cfg.StrOpt("region", default="", help="Region of the service; by default, the region of [identity]"),
    cfg.StrOpt("endpoint_type", default="publicURL", help="Interface of the service in the catalog"),
    cfg.StrOpt("preemptible_flavor_ref", default="",
               help="Flavor of preemptible servers, if flavors mark them; by default, flavor_ref of [compute]"),
    cfg.DictOpt("preemptible_hints", default={},
                help="Scheduler hints of preemptible servers, if hints mark them, such as preemptible:true"),
    cfg.StrOpt("preemptible_username", default="",
               help="User that starts preemptible servers, if projects mark them; by default, a user of Tempest's second "
                    "project"),
    cfg.StrOpt("preemptible_password", default="", secret=True, help="Password of that user"),
    cfg.StrOpt("preemptible_project_name", default="", help="Name of that project"),
    cfg.StrOpt("preemptible_domain_name", default="Default", help="Domain of that user and project"),
    cfg.BoolOpt("leave_before_start", default=True,
                help="Whether preemptible servers leave before a lease starts, as with preemptible.enabled of the service; "
                     "otherwise they are asked to leave at the start, and the lease waits for them"),
    cfg.IntOpt("notice", default=100, min=0,
               help="Maximum time in seconds between the request to leave and the start of a lease: at least the sum of "
                    "leases.grace, preemptible.margin and limits.longest_clock_skew of the service"),
    cfg.IntOpt("leased_hosts", default=1, min=1, help="Number of hosts to lease"),
    cfg.IntOpt("max_hosts", default=4, min=1,
               help="Maximum number of leasable hosts; the tests start up to two preemptible servers on each host"),
    cfg.IntOpt("build_timeout", default=300, min=1,
               help="Time limit for starting or deleting a server, seconds"),
    cfg.IntOpt("build_interval", default=1, min=1, help="Polling interval, seconds"),
    cfg.IntOpt("start_timeout", default=180, min=1,
               help="Time limit for a lease to become active after its start date, seconds"),
    cfg.IntOpt("end_timeout", default=300, min=1,
               help="Time limit until a deleted lease is gone, and until preemptible servers run on its hosts again, "
                    "seconds"),
]
