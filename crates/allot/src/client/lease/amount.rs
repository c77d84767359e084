//! A number of hosts, or a range of numbers.

/// An inclusive range. `min` is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) min: u32,
    pub(super) max: u32,
}

impl std::str::FromStr for Amount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "write a number such as 2, or a minimum and a maximum such as 2-4";
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        let min = min.trim().parse().map_err(|_| WRONG)?;
        let max = max.trim().parse().map_err(|_| WRONG)?;
        if min == 0 || max < min { Err(WRONG) } else { Ok(Self { min, max }) }
    }
}
