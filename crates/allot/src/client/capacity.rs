//! `allot capacity` reports refused requests and the capacity that would have met them.

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use leases::text::counted;
use serde::Deserialize;
use serde_json::Value;

use super::dates::of_answer;
use super::period::{self, Past};
use super::table::{Table, prose, word};
use super::wire::read;
use super::{ClientError, Session};

/// Additional hosts, instances or addresses. Each has a column that counts the requests it would have met.
const MORE: [u64; 4] = [1, 2, 5, 10];
/// Maximum number of kinds summarized below the table.
const SENTENCES: usize = 10;
/// The service counts refused requests within this time.
const LATEST_COUNT: SignedDuration = SignedDuration::from_mins(2);

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    past: Past,
    /// Only for this project; administrators can choose any
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
}

/// Refused requests of one kind.
#[derive(Debug, Deserialize)]
pub(super) struct Refused {
    resource_type: String,
    kind: String,
    #[serde(rename = "refused")]
    requests: u64,
    met_by: Vec<MetBy>,
}

#[derive(Debug, Deserialize)]
struct MetBy {
    more: u64,
    met: u64,
}

impl Refused {
    /// Number of requests that this much additional capacity would have met.
    fn met_by(&self, more: u64) -> u64 {
        self.met_by.iter().rfind(|step| step.more <= more).map_or(0, |step| step.met)
    }

    /// Describes the smallest addition that would have met three quarters of the requests that more capacity
    /// can meet. `None` if it can't meet any.
    fn sentence(&self) -> Option<String> {
        let all = self.met_by.last()?.met;
        let is_enough = |step: &&MetBy| step.met.saturating_mul(4) >= all.saturating_mul(3);
        let MetBy { more, met } = self.met_by.iter().find(is_enough)?;
        let number = match self.resource_type.as_str() {
            "physical:host" => counted(*more, "more host", "more hosts"),
            "virtual:floatingip" => counted(*more, "more address", "more addresses"),
            _ => format!("room for {}", counted(*more, "more instance", "more instances")),
        };
        let kind = if self.kind.is_empty() { String::new() } else { format!(" of kind {}", self.kind) };
        let refused = counted(self.requests, "refused request", "refused requests");
        Some(format!("With {number}{kind}, {met} of {refused} would have been met."))
    }
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = arguments.past.query(session).await?;
    query.extend(arguments.of_project.clone().map(|project| ("project_id", project)));
    let answer = session.connection.get("/v1/capacity", &query).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    period::note(&answer, session);
    if is_incomplete(&answer, session.answered()) {
        session.note_to_people("Requests refused in the last two minutes might not be counted yet.");
    }
    let refused: Vec<Refused> = read(&answer, "capacity")?;
    session.print_table(&table(&refused))?;
    for sentence in refused.iter().filter_map(Refused::sentence).take(SENTENCES) {
        session.done(&sentence)?;
    }
    Ok(())
}

/// Whether requests of the period of an answer may not be counted yet.
fn is_incomplete(answer: &Value, now: Timestamp) -> bool {
    let end = answer["end"].as_str().and_then(of_answer);
    end.is_none_or(|end| now.duration_since(end) < LATEST_COUNT)
}

pub(super) fn table(refused: &[Refused]) -> Table {
    let columns = [word("RESOURCE"), prose("KIND").key(), word("REFUSED")].into_iter();
    let columns = columns.chain(MORE.map(|more| word(&format!("+{more}"))));
    let mut table =
        Table::new(columns.collect::<Vec<_>>()).or("No request was refused for lack of capacity.");
    for kind in refused {
        let resource = match kind.resource_type.as_str() {
            "physical:host" => "hosts",
            "virtual:instance" | "flavor:instance" => "instances",
            "virtual:floatingip" => "addresses",
            other => other,
        };
        let name = if kind.kind.is_empty() { "any" } else { &kind.kind };
        let cells = [resource.to_owned(), name.to_owned(), kind.requests.to_string()].into_iter();
        table.add_row(cells.chain(MORE.map(|more| kind.met_by(more).to_string())));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(resource_type: &str, kind: &str, requests: u64, met_by: &[(u64, u64)]) -> Refused {
        let met_by = met_by.iter().map(|(more, met)| MetBy { more: *more, met: *met }).collect();
        Refused { resource_type: resource_type.to_owned(), kind: kind.to_owned(), requests, met_by }
    }

    #[test]
    fn a_sentence_says_what_most_of_the_refused_requests_lacked() {
        for (refused, expected) in [
            (
                refused("physical:host", "gpu=a100", 52, &[(1, 20), (3, 41), (9, 52)]),
                "With 3 more hosts of kind gpu=a100, 41 of 52 refused requests would have been met.",
            ),
            (
                refused("physical:host", "", 1, &[(1, 1)]),
                "With 1 more host, 1 of 1 refused request would have been met.",
            ),
            (
                refused("virtual:floatingip", "public", 9, &[(2, 4)]),
                "With 2 more addresses of kind public, 4 of 9 refused requests would have been met.",
            ),
            (
                refused("flavor:instance", "m1.small", 2, &[(8, 2)]),
                "With room for 8 more instances of kind m1.small, 2 of 2 refused requests would have been met.",
            ),
        ] {
            assert_eq!(refused.sentence().as_deref(), Some(expected));
        }
        assert_eq!(refused("virtual:floatingip", "public", 9, &[]).sentence(), None);
    }

    #[test]
    fn only_recent_periods_may_be_incomplete() {
        let is_incomplete = |end: &str| {
            let now = "2030-01-02T10:00:00Z".parse().expect("a timestamp");
            is_incomplete(&json!({"start": "2030-01-01T00:00:00Z", "end": end}), now)
        };
        assert!(is_incomplete("2030-01-02T10:00:00Z") && is_incomplete("2030-01-02T09:59:00Z"));
        assert!(!is_incomplete("2030-01-01T00:00:00Z") && !is_incomplete("2030-01-02T09:58:00Z"));
    }

    #[test]
    fn tables_show_what_is_met_by_at_most_so_much_more() {
        let answer = json!([{"resource_type": "physical:host", "kind": "rack=r1", "refused": 9,
            "met_by": [{"more": 2, "met": 3}, {"more": 4, "met": 7}]}]);
        let refused: Vec<Refused> = serde_json::from_value(answer).expect("it reads");
        assert_eq!(MORE.map(|more| refused[0].met_by(more)), [0, 3, 7, 7]);
        let text = table(&refused).in_pipe();
        let row: Vec<&str> = text.lines().last().expect("a row").split_whitespace().collect();
        assert_eq!(row, ["hosts", "rack=r1", "9", "0", "3", "7", "7"]);
    }
}
