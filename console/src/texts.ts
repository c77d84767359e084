// All texts of the console. A translation would be another file of the same shape.

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

const STATUSES: Record<string, string> = {
  PENDING: "pending",
  STARTING: "starting",
  ACTIVE: "active",
  TERMINATING: "ending",
  TERMINATED: "ended",
  DELETING: "being deleted",
  ERROR: "error",
  BUILD: "starting",
  QUEUED: "queued",
  SHELVED_OFFLOADED: "kept, stopped",
};

export const t = {
  product: "Allotment",
  skip: "Skip to content",
  navigation: "Views",
  nav: {
    calendar: "Calendar",
    leases: "Leases",
    fleet: "Fleet",
    instances: "Instances",
    placement: "Placement",
    usage: "Usage",
    admin: "Admin",
  },
  theme: { label: "Theme", system: "System", light: "Light", dark: "Dark" },
  zone: { label: "Time zone", here: (name: string): string => `Local (${name})` },
  signOut: "Sign out",
  signedInAs: (user: string, project: string): string => `${user} · project ${project}`,
  newLease: "New lease",
  close: "Close",
  loading: "Loading …",
  copy: "Copy ID",
  copied: "Copied",
  now: "now",
  more: (count: number): string => `Load ${count} more`,
  openPage: "Open page",
  retry: "Try again",

  service: {
    away: "Connection lost. Showing older data; retrying …",
    slow: "Still loading …",
    failed: (message: string): string => `Error: ${message}`,
    awayTitle: "The service cannot be reached",
    awayHint: "It might be restarting. This page keeps retrying. If the problem persists, check the network.",
    forbiddenTitle: "Your roles do not include this view",
    forbiddenHint: "Ask an operator for the role, or use the views of your own project.",
    missingTitle: "Not found",
    missingHint: "It was deleted, or it belongs to another project. Look for it in the list.",
  },

  userChanged: {
    title: "A different user is signed in",
    hint: "Another tab of this browser signed in as a different user or for a different project. Unsaved input in this tab was discarded.",
    go: "Continue as that user",
  },
  signOutFailed: "You are still signed in",

  signIn: {
    title: "Sign in",
    lead: "Use your API credentials.",
    method: "Method",
    password: "User and password",
    token: "Token",
    user: "User",
    passwordField: "Password",
    project: "Project",
    projectHint: "Leave empty for your default project",
    tokenField: "Token",
    submit: "Sign in",
    wrong: { password: "Wrong user name or password.", token: "Invalid or expired token." },
    over: "Session expired. Sign in to continue.",
  },

  status: (status: string): string => STATUSES[status] ?? status.toLowerCase(),
  degraded: "degraded",

  calendar: {
    title: "Calendar",
    today: "Today",
    earlier: "Earlier",
    later: "Later",
    zoomIn: "Zoom in",
    zoomOut: "Zoom out",
    spans: { hour: "Hour", day: "Day", week: "Week", month: "Month", quarter: "Quarter", year: "Year" },
    group: "Group by",
    pool: "pool",
    dense: "Compact",
    layers: "View",
    layer: {
      offer: "Held offers",
      instance: "Instances",
      preemptible: "Preemptible instances",
      maintenance: "Maintenance",
      power: "Power",
    },
    hosts: (count: number): string => plural(count, "host", "hosts"),
    moreHosts: (count: number): string => `Showing the first ${count} hosts.`,
    noHostsTitle: "No hosts yet",
    noHosts: "An operator adds hosts with: allot host create NAME",
    grid: "Hosts and their reservations. Arrow keys move, Enter opens, plus and minus zoom, T goes to today, N creates a lease.",
    unnamed: (id: string): string => `host ${id}`,
    other: "reserved by another project",
    maintenance: "maintenance",
    heldOffer: "held offer",
    instances: (count: number): string => plural(count, "instance", "instances"),
    preemptible: (count: number, until: string): string =>
      `${plural(count, "preemptible instance", "preemptible instances")}, safe until ${until}`,
    bar: (what: string, from: string, to: string): string => `${what}, from ${from} to ${to}`,
    open: "no end",
    freeHosts: "Free hosts",
    freeNow: (free: number, total: number): string => `${free} of ${total} free now`,
    freeAt: (free: number, total: number, time: string): string => `${free} of ${total} hosts free at ${time}`,
    rowEmpty: "no reservations in this period",
    groupLabel: (name: string, count: number): string => `${name}, ${plural(count, "host", "hosts")}`,
    ungrouped: "(none)",
    hostStatus: {
      open: "",
      closed: "cordoned",
      failed: "failed",
      maintenance: "in maintenance",
      deleted: "removed",
    } as Record<string, string>,
    powerOff: "off",
    drag: "Drag over free time to draft a lease.",
    asking: "checking …",
    can: "available",
    cannot: "not available",
    narrow: "Your leases (open on a wider screen for the calendar)",
    narrowAll: "Leases (open on a wider screen for the calendar)",
    nothingMine: "No current or upcoming leases.",
    startsIn: (time: string): string => `Starts in ${time}`,
    endsIn: (time: string): string => `Ends in ${time}`,
  },

  find: {
    title: "Next free slot",
    count: "Hosts",
    where: "Requirements",
    whereHint: "rack=r1 and gpu=a100",
    length: "Duration",
    submit: "Find",
    none: (count: number, total: number): string => {
      if (total === 0) return "No host matches. Relax the requirements.";
      if (total < count)
        return `Only ${plural(total, "host matches", "hosts match")}. Request fewer hosts or relax the requirements.`;
      return `No slot for ${plural(count, "host", "hosts")} in the next 30 days. Try fewer hosts or a shorter duration.`;
    },
    match: (total: number): string => `${plural(total, "host matches", "hosts match")}.`,
    badLength: "Enter a duration such as 2h, 1d or 1w.",
  },

  leases: {
    title: "Leases",
    filter: "Find by name or project",
    status: "Status",
    all: "all",
    current: "current and upcoming",
    columns: { name: "Name", project: "Project", status: "Status", start: "Start", end: "End", what: "Reserved" },
    noneTitle: "No leases",
    none: "Create the first one with New lease. The form checks availability as you type.",
    noneMatch: "No lease matches.",
    clear: "Clear filter",
    more: (count: number): string => `Showing the newest ${count} leases.`,
  },

  what: {
    hosts: (min: number, max: number): string => (min === max ? plural(min, "host", "hosts") : `${min}–${max} hosts`),
    instances: (amount: number, vcpus: number, memory: string): string =>
      `${plural(amount, "instance", "instances")} of ${vcpus} vCPU, ${memory}`,
    flavor: (amount: number, flavor: string): string => `${plural(amount, "instance", "instances")} of ${flavor}`,
    addresses: (amount: number, network: string): string =>
      `${plural(amount, "floating IP", "floating IPs")} of ${network}`,
  },

  lease: {
    missing: "Lease not found",
    project: "Project",
    user: "User",
    start: "Start",
    end: "End",
    lasts: "Duration",
    type: "Type",
    types: { SCHEDULE: "scheduled", IMMEDIATE: "immediate", "BEST-EFFORT": "as soon as possible" } as Record<
      string,
      string
    >,
    endAction: "End action",
    endActions: { delete: "deleted", keep: "kept", snapshot: "saved and deleted", migrate: "migrated" } as Record<
      string,
      string
    >,
    reason: "Reason",
    reserved: "Reserved",
    where: "Requirements:",
    hosts: "Hosts",
    hostsLater: "Hosts are assigned at the start.",
    addresses: "Floating IPs",
    guests: "Instances",
    noGuests: "No instances.",
    events: "Events",
    happened: "History",
    usage: "Usage",
    cost: (amount: string, currency: string): string => `Cost to date: ${amount} ${currency}`.trim(),
    costInAll: (amount: string, currency: string): string => `Total cost: ${amount} ${currency}`.trim(),
    usageRow: { reserved: "Reserved", reserved_so_far: "To date", used: "Used" },
    units: {
      host_hours: "host-hours",
      slot_hours: "instance-slot-hours",
      address_hours: "address-hours",
      core_hours: "core-hours",
      gib_hours: "GiB-hours of memory",
      instance_hours: "instance-hours",
      instances_started: "instances started",
    } as Record<string, string>,
    plan: "Migration plan",
    planSummary: (hosts: number, instances: number, seconds: number): string =>
      `${plural(hosts, "host", "hosts")} to clear, ${plural(instances, "instance", "instances")} to move, ${Math.ceil(seconds / 60)} min at most`,
    planProgress: (moved: number, of: number): string => `${moved} of ${of} moved`,
    move: (from: string, to: string): string => `${from} → ${to}`,
    actions: "Actions",
    name: "Name",
    newEnd: "New end",
    newStart: "New start",
    newEndAction: "When the lease ends, instances are",
    apply: "Save changes",
    applied: "Changes saved.",
    checking: "Checking …",
    changeOk: (what: string): string => `Available: ${what}.`,
    becomesLonger: (by: string): string => `ends ${by} later`,
    becomesShorter: (by: string): string => `ends ${by} earlier`,
    startsLater: (by: string): string => `starts ${by} later`,
    startsEarlier: (by: string): string => `starts ${by} earlier`,
    endActionBecomes: (action: string): string => `instances ${action} at end`,
    renamed: (name: string): string => `renamed to “${name}”`,
    resized: (count: number): string => `hosts: ${count}`,
    newCount: "Hosts",
    endNow: "End now",
    deleteIt: "Delete",
    endingActive: (guests: number, action: string): string =>
      `The lease ends now, and its hosts are released. ${guests === 0 ? "It has no instances." : `${plural(guests, "instance", "instances")} will be ${action}.`} This cannot be undone.`,
    endingPending: "The lease is deleted before its start, and its hosts are released. This cannot be undone.",
    confirmEnd: "End lease",
    confirmDelete: "Delete lease",
    cancel: "Cancel",
    conflict: "These hosts were just taken. The lease was not changed.",
    eventNames: {
      start_lease: "start",
      end_lease: "end",
      before_end_lease: "end reminder",
      before_start_lease: "start reminder",
    } as Record<string, string>,
    eventStatus: { DONE: "done", UNDONE: "scheduled", IN_PROGRESS: "running", ERROR: "failed" } as Record<
      string,
      string
    >,
  },

  form: {
    title: "New lease",
    name: "Name",
    what: "Resources",
    kinds: { hosts: "Whole hosts", instances: "Capacity for instances", flavor: "Instances of a flavor" },
    min: "At least",
    max: "At most",
    amount: "Instances",
    vcpus: "vCPUs",
    memory: "Memory, GiB",
    disk: "Disk, GiB",
    flavor: "Flavor",
    where: "Requirements",
    whereHelp: (properties: string): string =>
      properties
        ? `Properties: ${properties}, vcpus, memory_mb. Leave empty for any host.`
        : "For example vcpus>=64. Leave empty for any host.",
    only: "Only on",
    onlyAny: "Allow any matching host",
    when: "Time",
    types: { SCHEDULE: "Scheduled", "BEST-EFFORT": "As soon as possible", IMMEDIATE: "Now" },
    start: "Start",
    end: "End",
    lasts: "Duration",
    timeout: "Give up after",
    zone: (zone: string): string => `Times in ${zone}.`,
    endAction: "When the lease ends, instances are",
    endActionUsual: "(pool default)",
    waitlist: "Join the waitlist if unavailable",
    submit: "Create lease",
    submitWait: "Join the waitlist",
    matching: "Availability",
    asking: "Checking …",
    incomplete: "Fill in the form to check availability.",
    accepted: "Available",
    makesRoom: "Upcoming leases will be moved to other hosts.",
    acceptedFrom: (from: string, to: string): string => `Available from ${from} to ${to}`,
    willCost: (amount: string, currency: string): string => `Estimated cost: ${amount} ${currency}`.trim(),
    matches: (total: number, free: number): string =>
      `${plural(total, "host matches", "hosts match")}, at least ${free} free at any time.`,
    matchesRoom: (total: number, free: number): string =>
      `Capacity for ${total} in total, at least ${free} free at any time.`,
    instead: "Alternatives",
    offers: {
      later_start: "Start later",
      shorter_duration: "Shorter",
      fewer_hosts: "Fewer hosts",
      other_pool: "Another pool",
      longer_timeout: "Longer timeout",
    } as Record<string, string>,
    take: "Use",
    accept: "Accept",
    heldUntil: (time: string): string => `held for you until ${time}`,
    offerGone: "This offer has expired. Request new ones.",
    waiting: (place: number): string =>
      `You are number ${place} on the waitlist. The lease is created as soon as capacity is free.`,
    badLength: "Enter a duration such as 2h, 1d or 1w.",
    badOrder: "The end must be after the start.",
    past: "The start is in the past.",
    restored: "Draft restored.",
    clear: "Reset",
  },

  fleet: {
    title: "Fleet",
    filter: "Find by name or capability",
    columns: {
      host: "Host",
      pool: "Pool",
      state: "State",
      size: "Size",
      capabilities: "Capabilities",
      guests: "Instances",
      lease: "Current lease",
    },
    open: "open",
    closed: "cordoned",
    power: {
      on: "on",
      off: "off",
      booting: "booting",
      shutting_down: "shutting down",
      failed: "boot failed",
    } as Record<string, string>,
    size: (vcpus: number, memory: string, disk: string): string => `${vcpus} vCPU · ${memory} · ${disk}`,
    drain: "Plan drain",
    drainOf: (name: string): string => `Plan drain of ${name}`,
    cordon: "Cordon",
    uncordon: "Uncordon",
    cordoning: (name: string): string =>
      `${name} will take no new leases. Upcoming leases move to other hosts if possible; running leases continue.`,
    confirmCordon: "Cordon host",
    used: (vcpus: number, ofVcpus: number, memory: string, ofMemory: string): string =>
      `${vcpus} of ${ofVcpus} vCPU, ${memory} of ${ofMemory}`,
    summary: (hosts: number, open: number, leased: number, off: number, failed: number): string =>
      `${plural(hosts, "host", "hosts")}: ${open} open, ${leased} leased now${off ? `, ${off} off` : ""}${failed ? `, ${failed} failed` : ""}`,
    noneMatch: "No host matches.",
    drift: "Drift",
    driftCheck: "Check now",
    driftChecking: "Checking …",
    driftNone: "No drift.",
    driftRepair: "Repair",
    driftRepairing: (count: number): string =>
      `Repairs ${plural(count, "difference", "differences")}. This can add or release machines, update records, set overcommit ratios and delete leases of deleted projects.`,
    driftLeft: "Entries that cannot be repaired here say what to do.",
    energy: "Power, last 7 days",
    energyText: (used: string, saved: string): string => `${used} kWh used, ${saved} kWh saved by switching hosts off.`,
    energyUnknown: (hosts: number): string =>
      `Power draw is not set for ${plural(hosts, "host", "hosts")} (capability power_idle_watts).`,
    energyColumns: {
      pool: "Pool",
      busy: "Busy, host-hours",
      idle: "Idle, host-hours",
      off: "Off, host-hours",
      total: "Used, kWh",
      saved: "Saved, kWh",
      failed: "Failed boots",
    },
  },

  instances: {
    title: "Instances",
    columns: {
      name: "Name",
      project: "Project",
      kind: "Kind",
      status: "Status",
      host: "Host",
      size: "Size",
      safe: "Safe until",
      lease: "Lease",
    },
    kinds: { reserved: "leased", regular: "regular", preemptible: "preemptible" } as Record<string, string>,
    leaving: (time: string): string => `notified at ${time}`,
    gone: (time: string): string => `ends by ${time}`,
    moves: "will be migrated",
    noneTitle: "No instances",
    none: "To start one in a lease, or a preemptible one on an unreserved host: allot instance create NAME",
    filter: "Find by name, project or host",
    noneMatch: "No instance matches.",
    forever: "no limit",
  },

  placement: {
    title: "Placement",
    lead: "Analyze a Ganeti cluster or this service's fleet. Nothing is changed, and files are not stored.",
    fleet: "This service's fleet",
    fleetMeans:
      "The unleased hosts of each free pool are a group, and so are the hosts of each lease. Instances move within their group. Memory and vCPUs are counted, disks are not. Preemptible instances use capacity and are not moved.",
    named: "Cluster",
    none: "choose one",
    file: "File",
    orFile: "or file",
    wrongFile: "The file is neither in Ganeti's text format nor a JSON object with groups, nodes, instances and info.",
    noCluster: "Choose a cluster or a file: the output of hscan or hbal -S, or a remote API's answers as JSON.",
    questions: "Questions",
    names: { balance: "Balance", drain: "Drain", whatif: "What if", fit: "Fit" },
    about: {
      balance: "Find moves that balance a group, and see how each improves the score.",
      drain: "Check whether nodes can be emptied, by which moves, and which instances cannot leave.",
      whatif: "Compare a cluster before and after changes.",
      fit: "Count the instances of a shape that fit, and find changes that add capacity.",
    },
    fields: {
      group: "Group",
      moves: "Maximum moves",
      no_disk_moves: "No disk moves",
      nodes: "Nodes",
      reboot: "Reboot only",
      lose: "Failed nodes",
      add_nodes: "New nodes",
      remove_instances: "Remove instances",
      add_instances: "New instances",
      resize: "Resize instances",
      rebalance: "Balance the groups at the end",
      shape: "Instance shape",
      count: "Number of instances",
    },
    hints: {
      group: "Leave empty for the only group with nodes, or the fleet's largest free pool",
      moves: "Leave empty for no limit",
      nodes: "Comma-separated names",
      instances: "Comma-separated names",
      addNodes: "COUNT,DISK,RAM,CPUS, e.g. 2,500g,64g,16",
      addInstances: "COUNT,DISK,RAM,CPUS, e.g. 10,20g,4g,2",
      resize: "NAME:mem=8g,vcpus=4,disk=40g",
      shape: "DISK,RAM,CPUS, e.g. 20g,4g,2",
      count: "Leave empty for the maximum",
    },
    run: "Run",
    computing: "Computing …",
    columns: {
      number: "#",
      instance: "Instance",
      from: "From",
      to: "To",
      action: "Action",
      score: "Score",
      improves: "Improves",
      copied: "Copied",
      failing: "Fail N+1",
      figure: "Figure",
      before: "Before",
      after: "After",
      ofScore: "Effect on score",
    },
    rows: {
      score: "Score",
      failing: "Nodes failing N+1",
      stuck: "Nodes that cannot be evacuated",
      online: "Online nodes",
      instances: "Instances on online nodes",
      memory: "Free memory",
      disk: "Free disk",
      vcpus: "Free vCPUs",
      room: (shape: string): string => `Capacity for ${shape}`,
      violations: "Violations",
    },
    empty: "No instances.",
    balanced: (moves: number, group: string): string => `${plural(moves, "move", "moves")} in group ${group}`,
    scores: (before: string, after: string, best: string): string =>
      `Score ${before} before, ${after} after; lower bound ${best}. Lower is better.`,
    nothingToMove: "Already balanced.",
    components: "Score by component",
    drains: (moves: number): string =>
      moves === 0 ? "Yes, without moves." : `Yes, after ${plural(moves, "move", "moves")}.`,
    stays: (count: number): string =>
      `No: ${plural(count, "instance or mirror", "instances or mirrors")} cannot leave.`,
    others: "Other nodes",
    stuckMeans: "A node cannot be evacuated if, after its failure, the other nodes lack capacity for its instances.",
    shape: (disk: string, memory: string, vcpus: number, template: string): string =>
      `${disk} disk, ${memory} memory, ${plural(vcpus, "vCPU", "vCPUs")}, ${template}`,
    noLimit: "no limit",
    scoreChanges: "Changes of the score",
    balancingTakes: (moves: number): string => `Balancing takes ${plural(moves, "move", "moves")}`,
    fits: (answer: { count: number; wanted: number | null; exact: boolean; proven: boolean }): string => {
      const { count, wanted, exact, proven } = answer;
      if (wanted === null) {
        const more = exact ? "" : " or more";
        const open = exact && !proven ? "; no way was found for more" : "";
        return `${plural(count, "instance", "instances")}${more} ${count === 1 ? "fits" : "fit"}${open}`;
      }
      if (count >= wanted) return `Yes: ${plural(count, "instance fits", "instances fit")}`;
      const of = `${count} of ${plural(wanted, "instance", "instances")}`;
      if (!exact) return `No: counting stopped at ${of}, more may fit`;
      return proven ? `No: only ${of} ${count === 1 ? "fits" : "fit"}` : `No: no way was found for more than ${of}`;
    },
    stops: "Reason the next instance does not fit",
    remedies: "Single changes that would add capacity",
    noRemedy: "No single change was found that adds capacity.",
    remedy: (action: string, of: Record<string, unknown>): string => {
      switch (action) {
        case "moves":
          return plural(Array.isArray(of.moves) ? of.moves.length : 0, "move", "moves");
        case "policy":
          return of.template
            ? `policy of ${String(of.group)}: allow disk template ${String(of.template)}`
            : `policy of ${String(of.group)}: ${String(of.bound)} ${String(of.to)} instead of ${String(of.from)}`;
        case "alloc-policy":
          return `group ${String(of.group)}: allocation policy preferred instead of unallocable`;
        case "no-capacity-check":
          return "no capacity check";
        case "add-node":
          return `one more node like ${String(of.like)} in group ${String(of.group)}`;
        default:
          return action;
      }
    },
    more: (count: number): string => `${count} more`,
  },

  usage: {
    title: "Usage",
    period: "Period",
    periods: { month: "This month", week: "Last 7 days", day: "Last 24 hours" },
    columns: {
      project: "Project",
      leases: "Leases started",
      hosts: "Host-hours",
      cores: "Core-hours reserved",
      used: "Core-hours used",
      cost: "Cost",
    },
    none: "No usage in this period.",
    preemptible: "Preemptible instances",
    preemptibleText: (begun: number, hours: string, preempted: number, lost: string): string =>
      `${begun} started (${hours} instance-hours); ${preempted} preempted (${lost} hours lost).`,
    total: "Total",
    daily: "Host-hours reserved per day",
    chart: (value: string, day: string): string => `${value} host-hours on ${day}`,
  },

  admin: {
    title: "Admin",
    leasePools: "Lease pools",
    leasePoolColumns: { name: "Name", project: "Project", hosts: "Hosts", lease: "Lease", ratios: "Over-committed" },
    noLeasePools: "No lease pools.",
    ratios: (cpu: string, ram: string): string => `CPU ${cpu}, memory ${ram}`,
    pools: "Free pools",
    poolColumns: { name: "Name", hosts: "Hosts", end: "End action", specs: "Capabilities" },
    preemptible: "Preemptible projects",
    preemptibleColumns: { pattern: "Projects", since: "Listed since" },
    noPreemptible: "No preemptible projects. To add some: allot preemptible project add PATTERN",
    bySettings: "in the settings",
    waitlist: "Waitlist",
    waitColumns: { place: "Place", name: "Name", project: "Project", what: "Request", until: "Waits until" },
    noWaiting: "Waitlist is empty.",
    withdraw: "Withdraw",
    offers: "Held offers",
    offerColumns: { kind: "Kind", project: "Project", period: "Period", until: "Held until" },
    noOffers: "No held offers.",
    decline: "Decline",
    settings: "Settings and limits",
    settingsAbout:
      "Read-only. Set by the configuration file, the environment or flags at startup. Passwords and URL paths are hidden.",
    settingsFilter: "Find a setting or limit",
    settingsAll: (count: number): string => `Show all ${count}`,
    settingsNone: "All settings have their default values.",
    settingsNoMatch: "No setting matches.",
    settingColumns: { key: "Setting", value: "Value", about: "Meaning" },
    settingNothing: "none",
    settingSources: { flag: "flag", environment: "environment", file: "file", default: "default" } as Record<
      string,
      string
    >,
    settingDefault: (standard: string | null | undefined, source = ""): string =>
      `set by ${source}; default: ${standard ?? "none"}`,
    audit: "Audit log",
    auditColumns: { time: "Time", user: "User", project: "Project", action: "Action", object: "Object" },
    noAudit: "No records.",
  },

  page: { missing: "Page not found", missingHint: "The link might be outdated. Start from the calendar." },
};
