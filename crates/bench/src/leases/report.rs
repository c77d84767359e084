//! Measurements and their limits.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Mebibytes,
    Kibibytes,
    PerSecond,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Mebibytes => "MiB",
            Self::Kibibytes => "KiB",
            Self::PerSecond => "/s",
        }
    }
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Row {
    name: String,
    unit: Unit,
    /// Median, or the only figure.
    median: f64,
    /// 99th percentile of several samples.
    ninety_ninth: Option<f64>,
    /// Maximum of several samples.
    most: Option<f64>,
    wanted: Option<f64>,
}

impl Row {
    /// A row with a single figure.
    pub fn one(name: &str, unit: Unit, figure: f64) -> Self {
        Self { name: name.to_owned(), unit, median: figure, ninety_ninth: None, most: None, wanted: None }
    }

    /// Adds the 99th percentile.
    pub fn with_ninety_ninth(self, figure: f64) -> Self {
        Self { ninety_ninth: Some(figure), ..self }
    }

    /// A row of many samples.
    pub fn of(name: &str, mut times: Vec<Duration>) -> Result<Self> {
        times.sort_unstable();
        let at = |share: f64| -> Result<f64> {
            // Nearest rank: the smallest sample that at least this share of all samples doesn't exceed.
            let rank = (share * times.len() as f64).ceil() as usize;
            let time =
                times.get(rank.saturating_sub(1)).with_context(|| format!("nothing measured: {name}"))?;
            Ok(time.as_secs_f64() * 1000.0)
        };
        let (median, ninety_ninth, most) = (at(0.5)?, Some(at(0.99)?), Some(at(1.0)?));
        Ok(Self { name: name.to_owned(), unit: Unit::Milliseconds, median, ninety_ninth, most, wanted: None })
    }

    /// Sets the limit of the 99th percentile, or of the only figure.
    pub fn wanted_below(self, wanted: f64) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    fn is_met(&self) -> Option<bool> {
        self.wanted.map(|wanted| self.ninety_ninth.unwrap_or(self.median) < wanted)
    }

    fn line(&self) -> String {
        let figure = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let wanted = match (self.wanted, self.is_met()) {
            (Some(wanted), Some(met)) => format!("< {wanted}{}", if met { "" } else { "  MISSED" }),
            _ => String::new(),
        };
        let Self { name, unit, median, ninety_ninth, most, .. } = self;
        let (ninety_ninth, most) = (figure(*ninety_ninth), figure(*most));
        let line =
            format!("{name:<44} {median:>9.1} {ninety_ninth:>9} {most:>9} {:<4} {wanted}", unit.name());
        line.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "unit": self.unit.name(), "median": self.median, "p99": self.ninety_ninth,
               "max": self.most, "wanted_below": self.wanted, "met": self.is_met()})
    }
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a row and prints it immediately, because a complete run takes minutes.
    pub fn add(&mut self, row: Row) {
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    /// Prints a table, or JSON.
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", Value::Array(self.rows.iter().map(Row::json).collect()));
            return;
        }
        println!("{:<44} {:>9} {:>9} {:>9}      wanted", "", "median", "99 %", "max");
        for row in &self.rows {
            println!("{}", row.line());
        }
    }

    /// Fails if a figure exceeds its limit.
    pub fn conclude(&self) -> Result<()> {
        let missed: Vec<&str> =
            self.rows.iter().filter(|row| row.is_met() == Some(false)).map(|row| row.name.as_str()).collect();
        if !missed.is_empty() {
            bail!("not as fast as wanted: {}", missed.join(", "));
        }
        Ok(())
    }
}

/// Median and 99th percentile, in milliseconds, from a line such as `a thing  median 250.123µs  p99 1.5ms`.
pub fn milliseconds(line: &str) -> Result<[f64; 2]> {
    let time = |name: &str| {
        let mut words = line.split_whitespace().skip_while(|&word| word != name).skip(1);
        let word = words.next()?;
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number: f64 = word.strip_suffix(unit)?.parse().ok()?;
        let in_milliseconds = match unit {
            "s" => 1e3,
            "ms" => 1.0,
            "µs" => 1e-3,
            "ns" => 1e-6,
            _ => return None,
        };
        Some(number * in_milliseconds)
    };
    let times = time("median").zip(time("p99")).with_context(|| format!("no times in '{line}'"))?;
    Ok([times.0, times.1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_judged_by_its_99th_percentile() {
        let times = |slow: usize| {
            let fast = vec![Duration::from_millis(1); 200 - slow];
            [fast, vec![Duration::from_millis(60); slow]].concat()
        };
        assert_eq!(Row::of("x", times(2)).unwrap().wanted_below(50.0).is_met(), Some(true));
        assert_eq!(Row::of("x", times(3)).unwrap().wanted_below(50.0).is_met(), Some(false));
        assert!(Row::of("x", Vec::new()).is_err());
    }

    #[test]
    fn times_of_a_line_are_read_in_their_units() {
        assert_eq!(milliseconds("slot of 20   median 250.000µs   p99 1.5ms").unwrap(), [0.25, 1.5]);
        assert!(milliseconds("slot of 20").is_err());
    }
}
