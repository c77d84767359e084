//! Ways to serve a workload.

/// What clients and the service do beside the plainest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// Whoever is refused an advance reservation accepts an offer that comes near.
    pub offers: bool,
    /// What is refused waits until it can be had, or its start is over.
    pub waitlist: bool,
    /// Hosts that nobody needs are switched off.
    pub power: bool,
    /// Guests of others come and go on some hosts.
    pub guests: bool,
    /// They are moved out of the way of best-effort leases.
    pub hunts: bool,
    /// Preemptible instances fill the gaps.
    pub fill: bool,
    /// They are moved to another gap instead of leaving, where there is one.
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

    /// All of them. Those with guests have advance reservations on fewer hosts, so they compare with each other only.
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

    /// That of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name == name)
    }
}
