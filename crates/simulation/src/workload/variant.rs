//! Variants of serving a workload.

/// Options of clients and the service, on top of the plain replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    pub name: &'static str,
    /// Clients that are refused an advance reservation accept an offer that comes close.
    pub offers: bool,
    /// Refused requests wait until capacity is free or their start has passed.
    pub waitlist: bool,
    /// Unneeded hosts are switched off.
    pub power: bool,
    /// Guests of other tenants come and go on some hosts.
    pub guests: bool,
    /// Best-effort leases hunt: guests in their way are moved.
    pub hunts: bool,
    /// Preemptible instances fill the gaps.
    pub fill: bool,
    /// Preemptible instances move to another gap, if there is one, instead of leaving.
    pub moves: bool,
}

impl Variant {
    const PLAIN: Self = Self {
        name: "plain",
        offers: false,
        waitlist: false,
        power: false,
        guests: false,
        hunts: false,
        fill: false,
        moves: false,
    };

    /// All variants. Those with guests have advance reservations on fewer hosts, so they compare only with
    /// each other.
    pub const ALL: [Self; 8] = [
        Self::PLAIN,
        Self { name: "offers", offers: true, ..Self::PLAIN },
        Self { name: "waitlist", waitlist: true, ..Self::PLAIN },
        Self { name: "power", power: true, ..Self::PLAIN },
        Self { name: "guests", guests: true, ..Self::PLAIN },
        Self { name: "hunts", guests: true, hunts: true, ..Self::PLAIN },
        Self { name: "fill", fill: true, ..Self::PLAIN },
        Self { name: "move", fill: true, moves: true, ..Self::PLAIN },
    ];

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name == name)
    }
}
