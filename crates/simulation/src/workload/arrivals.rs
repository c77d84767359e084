//! Recorded arrivals of virtual machines, which become preemptible instances.
//!
//! The format is CSV with a heading and one machine per line: arrival time, number of its batch, CPUs, memory
//! in GiB, run time, and whether it still ran when the record ended. Times are in seconds.

use super::trace::{Field, Line, MOST_SECONDS, TraceError, Wrong};

/// Number of fields in a line.
const FIELDS: usize = 6;
const MOST_CORES: i64 = 1024;
const MIB_PER_GIB: f64 = 1024.0;
const MOST_GIB: f64 = 65_536.0;

/// A virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Arrival, in seconds after the first one.
    pub at_s: i64,
    pub vcpus: u32,
    pub memory_mib: u32,
    /// Run time in seconds, unless it is preempted.
    pub runs_s: i64,
}

/// Machines in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    all: Vec<Arrival>,
    /// Time after which the record repeats, in seconds.
    period_s: i64,
}

impl Arrivals {
    /// Parses a record. Only batches whose number is a multiple of `every` are kept.
    pub fn from_csv(text: &str, every: i64) -> Result<Self, TraceError> {
        let mut all = Vec::new();
        for line in Line::all(text).skip(1) {
            let words = line.words_between(',', FIELDS)?;
            let at_s = line.number(&words, 0, Field::Submit, 0, MOST_SECONDS)?;
            let batch = line.number(&words, 1, Field::Batch, 0, i64::MAX)?;
            let vcpus = line.number(&words, 2, Field::Cores, 1, MOST_CORES)? as u32;
            let runs_s = line.number(&words, 4, Field::Runs, 1, MOST_SECONDS)?;
            let gib = words[3].parse().ok().filter(|gib: &f64| (0.0..=MOST_GIB).contains(gib));
            let no_memory = || Wrong::NoAmount { field: Field::Memory, value: words[3].to_owned() };
            let memory_mib = (gib.ok_or_else(|| line.wrong(no_memory()))? * MIB_PER_GIB) as u32;
            if batch % every.max(1) == 0 {
                all.push(Arrival { at_s, vcpus, memory_mib, runs_s });
            }
        }
        all.sort_by_key(|arrival| arrival.at_s);
        let (first_s, last_s) = (all.first().map_or(0, |a| a.at_s), all.last().map_or(0, |a| a.at_s));
        for arrival in &mut all {
            arrival.at_s -= first_s;
        }
        Ok(Self { all, period_s: (last_s - first_s).max(1) })
    }

    /// The arrival at that position. The record repeats forever; `None` only if it is empty.
    pub fn get(&self, place: usize) -> Option<Arrival> {
        let times = place.checked_div(self.all.len())?;
        let arrival = self.all[place % self.all.len()];
        Some(Arrival { at_s: arrival.at_s + self.period_s * times as i64, ..arrival })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "arrival_s,batch,vcpus,mem_gib,duration_s,censored\n\
        1000,0,8,14,300,0\n1300,1,1,0.75,1200,0\n1600,2,2,3.5,900,1\n";

    #[test]
    fn arrivals_are_read_batch_by_batch_and_begin_again() {
        let arrivals = Arrivals::from_csv(CSV, 2).expect("a record");
        let first = Arrival { at_s: 0, vcpus: 8, memory_mib: 14_336, runs_s: 300 };
        let second = Arrival { at_s: 600, vcpus: 2, memory_mib: 3584, runs_s: 900 };
        let again = Arrival { at_s: 1200, ..second };
        assert_eq!([0, 1, 3].map(|place| arrivals.get(place)), [Some(first), Some(second), Some(again)]);
        assert_eq!(Arrivals::default().get(0), None);
    }

    #[test]
    fn what_is_wrong_with_an_arrival_is_said() {
        let said = |text: &str| Arrivals::from_csv(text, 1).expect_err("wrong").to_string();
        let text = "line 3: the memory isn't an amount of GiB: 'much'";
        assert_eq!(said(&CSV.replace("0.75", "much")), text);
        assert_eq!(said("heading\n1,2\n"), "line 2: 2 fields instead of 6");
        let text = "line 2: the number of CPUs is 0, and has to be between 1 and 1024";
        assert_eq!(said(&CSV.replace(",8,", ",0,")), text);
    }
}
