"""The options of the plugin in tempest.conf."""

from oslo_config import cfg

SERVICE = cfg.BoolOpt("allot", default=True, help="Whether Allotment is expected to be available")

GROUP = cfg.OptGroup(name="allot", title="Allotment")

OPTIONS = [
    cfg.StrOpt("catalog_type", default="reservation", help="Type of the service in the catalog"),
    cfg.StrOpt("region", default="", help="Region of the service; without it, the region of [identity]"),
    cfg.StrOpt("endpoint_type", default="publicURL", help="Interface of the service in the catalog"),
    cfg.StrOpt("preemptible_flavor_ref", default="",
               help="Flavor of preemptible servers, where flavors mark them; without it, flavor_ref of [compute]"),
    cfg.DictOpt("preemptible_hints", default={},
                help="Scheduler hints of preemptible servers, where hints mark them: preemptible:true"),
    cfg.StrOpt("preemptible_username", default="",
               help="User of a project whose servers are preemptible, where projects mark them; without it, Tempest's second "
                    "project starts them"),
    cfg.StrOpt("preemptible_password", default="", secret=True, help="Password of that user"),
    cfg.StrOpt("preemptible_project_name", default="", help="Name of that project"),
    cfg.StrOpt("preemptible_domain_name", default="Default", help="Domain of both"),
    cfg.BoolOpt("leave_before_start", default=True,
                help="Whether preemptible servers leave before a lease starts, as with preemptible.enabled of the service; "
                     "without that they are asked to leave at the start, and the lease waits for them"),
    cfg.IntOpt("notice", default=100, min=0,
               help="How long before the start of a lease they are asked to leave at the earliest, seconds: leases.grace, "
                    "preemptible.margin and limits.longest_clock_skew of the service together, or a little more"),
    cfg.IntOpt("leased_hosts", default=1, min=1, help="How many hosts the lease of hosts has"),
    cfg.IntOpt("max_hosts", default=4, min=1,
               help="The most leasable hosts with which the tests run: twice as many preemptible servers are started at once"),
    cfg.IntOpt("build_timeout", default=300, min=1,
               help="How long a server may take to be started or deleted, seconds"),
    cfg.IntOpt("build_interval", default=1, min=1, help="How often it is asked what has changed, seconds"),
    cfg.IntOpt("start_timeout", default=180, min=1,
               help="How long after its start date a lease may take to be active, seconds"),
    cfg.IntOpt("end_timeout", default=300, min=1,
               help="How long it may take until a deleted lease is gone, and until preemptible servers run on its hosts again, "
                    "seconds"),
]
