//! Renders charts as lines of text.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::axis::ticks;
use super::chart::{Bar, Chart, State};
use crate::client::dates::{show, zone_name};

/// Characters and colors to draw with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// ASCII, for files and pipes.
    Letters,
    /// Block characters without colors.
    Blocks,
    /// Block characters, with a color per lease.
    Colours,
}

/// Maximum width of host names, in columns. Longer names are cut.
const MOST_NAME: usize = 24;
/// Maximum number of leases in the legend. The rest are only counted.
const MOST_LEASES: usize = 40;
/// Colors on which black letters are readable, from the 256 that terminals support.
const PALETTE: [u8; 10] = [39, 78, 214, 176, 80, 210, 149, 111, 222, 183];

/// Draws the chart, its legend and a note about the time zone.
pub(super) fn draw(chart: &Chart, width: usize, ink: Ink, zone: &TimeZone) -> String {
    if chart.rows.is_empty() {
        return "There are no hosts. `allot host create NAME` adds a machine of the fleet.".to_owned();
    }
    let names = chart.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).clamp(4, MOST_NAME);
    let grid = Grid {
        names,
        cells: width.saturating_sub(names + 2).max(10),
        from: chart.from.as_second(),
        to: chart.to.as_second(),
        now: chart.now.as_second(),
        ink,
        numbers: chart.leases().iter().enumerate().map(|(number, bar)| (bar.lease.clone(), number)).collect(),
    };
    let mut lines = grid.head(chart, zone);
    let mut group = None;
    for row in &chart.rows {
        if row.group.is_some() && row.group != group {
            group.clone_from(&row.group);
            let shown = group.as_deref().filter(|value| !value.is_empty()).unwrap_or("(none)");
            lines.push(format!("{shown}:"));
        }
        for (number, lane) in chart.lanes(row).iter().enumerate() {
            let name = if number == 0 { row.name.as_str() } else { "" };
            lines.push(grid.lane(name, lane, row.state));
        }
    }
    lines.extend(grid.legend(chart, zone));
    lines.push(format!("Times are {}.", zone_name(zone)));
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Layout of the chart. Each cell has two halves, so bars are drawn with twice the resolution of letters.
struct Grid {
    names: usize,
    cells: usize,
    from: i64,
    to: i64,
    now: i64,
    ink: Ink,
    /// Positions of the leases in the legend, which select their colors.
    numbers: BTreeMap<String, usize>,
}

/// Contents of half a cell: the index of a bar in its lane.
type Half = Option<usize>;

impl Grid {
    /// Index of the half cell whose start is nearest to the instant.
    fn half(&self, instant: Timestamp) -> usize {
        let second = instant.as_second().clamp(self.from, self.to);
        let (passed, length) = (i128::from(second - self.from), i128::from(self.to - self.from));
        let halves = 2 * self.cells as i128;
        ((passed * halves * 2 + length) / (2 * length)) as usize
    }

    /// Cell of the current time, if the chart includes it.
    fn present(&self) -> Option<usize> {
        if !(self.from..self.to).contains(&self.now) {
            return None;
        }
        let (passed, length) = (i128::from(self.now - self.from), i128::from(self.to - self.from));
        Some((passed * self.cells as i128 / length) as usize)
    }

    fn head(&self, chart: &Chart, zone: &TimeZone) -> Vec<String> {
        let (mark, rule) = if self.ink == Ink::Letters { ('+', '-') } else { ('┬', '─') };
        let mut labels = vec![' '; self.cells];
        let mut line = vec![rule; self.cells];
        let mut free = 0;
        for tick in ticks(chart, self.cells, zone) {
            let place = self.half(tick.at) / 2;
            let length = tick.label.chars().count();
            if place < self.cells {
                line[place] = mark;
            }
            if place >= free && place + length <= self.cells {
                labels.splice(place..place + length, tick.label.chars());
                free = place + length + 1;
            }
        }
        let indent = " ".repeat(self.names + 1);
        [labels, line].map(|line| format!("{indent}{}", line.into_iter().collect::<String>())).to_vec()
    }

    fn lane(&self, name: &str, bars: &[&Bar], state: State) -> String {
        let halves = self.halves(bars);
        let labels = self.labels(&halves, bars);
        let mark = if state == State::Failed && !name.is_empty() { '!' } else { ' ' };
        let cut: String = name.chars().take(self.names).collect();
        let mut line = Line::new(format!("{cut:<width$}{mark}", width = self.names));
        let present = self.present();
        for cell in 0..self.cells {
            match (halves[2 * cell], halves[2 * cell + 1]) {
                (None, None) if Some(cell) == present => {
                    line.push(if self.ink == Ink::Letters { ':' } else { '┊' }, "");
                }
                (None, None) => line.push(' ', ""),
                (left, right) if self.ink == Ink::Letters => {
                    line.push(labels[cell].unwrap_or_else(|| letter(&halves, cell, left, right)), "");
                }
                (left, right) => self.block(&mut line, (left, right), labels[cell], bars),
            }
        }
        line.finish()
    }

    /// Assigns half cells to bars. Every bar gets at least one as long as any are left.
    fn halves(&self, bars: &[&Bar]) -> Vec<Half> {
        let mut halves = vec![None; 2 * self.cells];
        let mut free = 0;
        for (number, bar) in bars.iter().enumerate() {
            let start = self.half(bar.start).max(free).min(halves.len());
            let end = self.half(bar.end).max(start + 1).min(halves.len());
            halves[start..end].fill(Some(number));
            free = end;
        }
        halves
    }

    /// Places the letters of names in cells that belong entirely to one bar. One cell at each end stays free.
    fn labels(&self, halves: &[Half], bars: &[&Bar]) -> Vec<Option<char>> {
        let mut labels = vec![None; self.cells];
        for (number, bar) in bars.iter().enumerate() {
            let whole =
                |cell: &usize| halves[2 * cell] == Some(number) && halves[2 * cell + 1] == Some(number);
            let cells: Vec<usize> = (0..self.cells).filter(whole).collect();
            let Some((first, room)) = cells.first().map(|first| (first + 1, cells.len().saturating_sub(2)))
            else {
                continue;
            };
            if room >= 2 {
                for (place, letter) in bar.name.chars().take(room).enumerate() {
                    labels[first + place] = Some(letter);
                }
            }
        }
        labels
    }

    fn block(&self, line: &mut Line, halves: (Half, Half), label: Option<char>, bars: &[&Bar]) {
        let colour = |number: usize| self.colour(bars[number]);
        match (self.ink, halves) {
            (Ink::Colours, (Some(left), Some(right))) if left == right => {
                line.push(label.unwrap_or(' '), &format!("30;48;5;{}", colour(left)));
            }
            (Ink::Colours, (Some(left), Some(right))) => {
                line.push('▌', &format!("38;5;{};48;5;{}", colour(left), colour(right)));
            }
            (Ink::Colours, (Some(left), None)) => line.push('▌', &format!("38;5;{}", colour(left))),
            (Ink::Colours, (None, Some(right))) => line.push('▐', &format!("38;5;{}", colour(right))),
            // Alternating shades separate neighboring bars.
            (_, (Some(left), Some(right))) if left == right => {
                line.push(label.unwrap_or(if left % 2 == 0 { '█' } else { '▓' }), "");
            }
            (_, (Some(_), _)) => line.push('▌', ""),
            (_, (None, _)) => line.push('▐', ""),
        }
    }

    fn colour(&self, bar: &Bar) -> u8 {
        const GREY: u8 = 245;
        const RED: u8 = 203;
        match bar.status.as_str() {
            // Leases of other projects have no status.
            "TERMINATED" | "" => GREY,
            "ERROR" => RED,
            _ => PALETTE[self.numbers.get(&bar.lease).copied().unwrap_or(0) % PALETTE.len()],
        }
    }

    fn legend(&self, chart: &Chart, zone: &TimeZone) -> Vec<String> {
        let leases = chart.leases();
        let longest =
            |text: fn(&Bar) -> &str| leases.iter().map(|bar| text(bar).chars().count()).max().unwrap_or(0);
        let (name, project) = (longest(|bar| &bar.name).min(30), longest(|bar| &bar.project).min(20));
        let mut lines = vec![String::new()];
        for bar in leases.iter().take(MOST_LEASES) {
            let swatch = match self.ink {
                Ink::Colours => format!("\u{1b}[48;5;{}m  \u{1b}[0m ", self.colour(bar)),
                _ => String::new(),
            };
            lines.push(format!(
                "{swatch}{:<name$}  {:<project$}  {:<11} {} - {}",
                bar.name,
                bar.project,
                bar.status,
                show(bar.start, zone),
                show(bar.end, zone)
            ));
        }
        if !chart.rows.iter().flat_map(|row| &row.bars).any(|bar| chart.shows(bar)) {
            lines.push("No reservations in this period.".to_owned());
        }
        if leases.len() > MOST_LEASES {
            lines.push(format!("and {} more leases", leases.len() - MOST_LEASES));
        }
        lines
    }
}

/// A line with colored cells. Escape sequences are written only where the color changes.
struct Line {
    text: String,
    /// SGR parameters in effect, or empty for the terminal's default colors.
    colours: String,
}

impl Line {
    fn new(text: String) -> Self {
        Self { text, colours: String::new() }
    }

    fn push(&mut self, symbol: char, colours: &str) {
        if self.colours != colours {
            if !self.colours.is_empty() {
                self.text.push_str("\u{1b}[0m");
            }
            if !colours.is_empty() {
                self.text.extend(["\u{1b}[", colours, "m"]);
            }
            colours.clone_into(&mut self.colours);
        }
        self.text.push(symbol);
    }

    fn finish(mut self) -> String {
        if !self.colours.is_empty() {
            self.text.push_str("\u{1b}[0m");
        }
        self.text
    }
}

/// ASCII character of a cell, with brackets at the ends of a bar.
fn letter(halves: &[Half], cell: usize, left: Half, right: Half) -> char {
    let (before, after) =
        (cell.checked_sub(1).and_then(|cell| halves[2 * cell + 1]), halves.get(2 * cell + 2));
    match (left, right) {
        (Some(left), Some(right)) if left != right => '|',
        (None, Some(_)) => '[',
        (Some(_), None) => ']',
        (left, _) if before != left => '[',
        (left, _) if after.copied().flatten() != left => ']',
        _ => '=',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::calendar::chart::Row;

    fn at(text: &str) -> Timestamp {
        format!("2030-01-{text}:00Z").parse().expect("a timestamp")
    }

    fn bar(name: &str, start: &str, end: &str) -> Bar {
        Bar {
            lease: format!("id of {name}"),
            name: name.to_owned(),
            project: "physics".to_owned(),
            status: "PENDING".to_owned(),
            start: at(start),
            end: at(end),
        }
    }

    fn row(name: &str, bars: Vec<Bar>) -> Row {
        Row { name: name.to_owned(), group: None, state: State::Fine, bars }
    }

    fn chart() -> Chart {
        Chart {
            from: at("02T00:00"),
            to: at("04T00:00"),
            now: at("02T06:00"),
            rows: vec![
                row("node1", vec![bar("web", "01T12:00", "02T18:00"), bar("db", "02T18:00", "05T00:00")]),
                row("node2", vec![bar("ci", "03T00:00", "03T12:00"), bar("night", "03T06:00", "03T18:00")]),
                Row { state: State::Failed, ..row("node3", vec![bar("blink", "02T12:00", "02T12:10")]) },
                row("node4", Vec::new()),
            ],
        }
    }

    #[test]
    fn a_chart_in_letters_can_be_piped() {
        let shown = draw(&chart(), 54, Ink::Letters, &TimeZone::UTC);
        assert_eq!(shown, include_str!("expected/letters.txt").trim_end());
    }

    #[test]
    fn blocks_show_halves_of_cells() {
        let shown = draw(&chart(), 54, Ink::Blocks, &TimeZone::UTC);
        assert_eq!(shown, include_str!("expected/blocks.txt").trim_end());
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = draw(&chart(), 54, Ink::Colours, &TimeZone::UTC);
        assert!(coloured.contains("\u{1b}[30;48;5;39m web   "), "{coloured:?}");
        assert!(
            coloured
                .lines()
                .all(|line| line.matches("\u{1b}[0m").count() * 2 == line.matches('\u{1b}').count())
        );
    }

    #[test]
    fn a_chart_without_hosts_says_how_to_get_some() {
        let empty = Chart { rows: Vec::new(), ..chart() };
        assert!(draw(&empty, 80, Ink::Letters, &TimeZone::UTC).contains("allot host create"));
    }
}
