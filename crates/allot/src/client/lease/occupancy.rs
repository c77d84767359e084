//! `allot lease occupancy` shows the instances observed on a lease's hosts.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{LEASES, identify};
use crate::client::identify::is_prefix;
use crate::client::table::{Table, id, prose, time, word};
use crate::client::wire::read;
use crate::client::{ClientError, Session};

/// Intervals per request.
const PAGE: usize = 500;

#[derive(Debug, Deserialize)]
struct Interval {
    host_id: String,
    host: Option<String>,
    kind: String,
    instance_id: Option<String>,
    project_id: Option<String>,
    start: String,
    end: Option<String>,
    begins: bool,
}

impl Interval {
    fn host(&self) -> &str {
        self.host.as_ref().unwrap_or(&self.host_id)
    }

    fn what(&self) -> &str {
        match self.kind.as_str() {
            "verified" => "verified empty",
            "unfenced" => "fence missing",
            "releasing" => "being released",
            "unseen" => "not observed",
            "foreign_instance" => "instance of another project",
            kind => kind,
        }
    }
}

/// Reads the intervals and groups them by host. Intervals of the same host keep their order.
fn intervals(answer: &Value) -> Result<Vec<Interval>, ClientError> {
    let mut intervals: Vec<Interval> = read(answer, "occupancy")?;
    intervals.sort_by(|one, other| one.host().cmp(other.host()));
    Ok(intervals)
}

pub(super) async fn run(lease: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = identify(lease, session).await.map_err(|error| with_hint(lease, error))?;
    let answer = all(&format!("/v1/leases/{id}/occupancy"), session).await?;
    session.print_answer(&answer, || table(&answer))?;
    let intervals = intervals(&answer)?;
    if let Some(until) = answer["seen_until"].as_str().filter(|_| !intervals.is_empty()) {
        let until = session.brief(until);
        session.note_to_people(&format!("Observations are recorded until {until}."));
    }
    for host in incomplete(&intervals) {
        session.note_to_people(&format!("Older records of {host} have expired."));
    }
    Ok(())
}

/// How to name leases that lists don't have.
const WHOLE_IDENTIFIERS: &str = "to find a deleted lease or one of another project, use its full ID: see `allot usage \
                                 --by lease -o wide` for your project, and `allot audit -o wide` for others";

/// Replaces the hint for the beginning of an identifier that no listed lease has.
fn with_hint(lease: &str, error: ClientError) -> ClientError {
    let is_unknown = is_prefix(lease) && LEASES.is_unknown(lease, &error);
    match error {
        ClientError::Refused { status, message, .. } if is_unknown => {
            ClientError::Refused { status, message, hint: Some(WHOLE_IDENTIFIERS.to_owned()) }
        }
        error => error,
    }
}

/// Reads all pages into one document.
async fn all(path: &str, session: &Session<'_>) -> Result<Value, ClientError> {
    let (mut found, mut after): (Vec<Value>, u64) = (Vec::new(), 0);
    loop {
        let query = [("limit", PAGE.to_string()), ("after", after.to_string())];
        let mut answer = session.connection.get(path, &query).await?;
        let page: Vec<Value> = read(&answer, "occupancy")?;
        let more = page.len() == PAGE;
        after = answer["last"].as_u64().unwrap_or(after);
        found.extend(page);
        if !more {
            answer["occupancy"] = json!(found);
            return Ok(answer);
        }
    }
}

/// Hosts without their oldest records.
fn incomplete(intervals: &[Interval]) -> Vec<&str> {
    let hosts = intervals.chunk_by(|one, other| one.host() == other.host());
    hosts.filter_map(|of_host| of_host.first()).filter(|first| !first.begins).map(Interval::host).collect()
}

pub(in crate::client) fn table(answer: &Value) -> Result<Table, ClientError> {
    let columns = [
        word("HOST"),
        time("FROM"),
        time("UNTIL"),
        prose("WHAT"),
        id("INSTANCE").hide(2),
        word("PROJECT").hide(1),
    ];
    let mut table = Table::new(columns).or("No observations are recorded for the hosts of this lease.");
    for interval in intervals(answer)? {
        let (host, what) = (interval.host().to_owned(), interval.what().to_owned());
        let Interval { start, end, instance_id, project_id, .. } = interval;
        table.add_row([
            host,
            start,
            end.unwrap_or_else(|| "ongoing".to_owned()),
            what,
            instance_id.unwrap_or_default(),
            project_id.unwrap_or_default(),
        ]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(host: Option<&str>, kind: &str, end: Option<&str>, begins: bool) -> Value {
        json!({"number": 1, "host_id": "12", "host": host, "kind": kind, "instance_id": null, "project_id": null,
            "start": "2030-01-02T10:00:00Z", "end": end, "begins": begins})
    }

    #[test]
    fn only_an_unknown_lease_is_said_to_need_its_whole_identifier() {
        let refused = |message: &str| ClientError::Refused {
            status: 404,
            message: message.to_owned(),
            hint: Some("use more of the ID".to_owned()),
        };
        let hint = |lease: &str, message: &str| with_hint(lease, refused(message)).hint().map(str::to_owned);
        let unknown = hint("ecdc", "there is no lease \"ecdc\" in project p");
        assert_eq!(unknown.as_deref(), Some(WHOLE_IDENTIFIERS));
        for (lease, message) in
            [("ecdc", "lease \"ecdc\" is ambiguous"), ("web", "there is no lease \"web\"")]
        {
            assert_eq!(hint(lease, message).as_deref(), Some("use more of the ID"), "{message}");
        }
    }

    #[test]
    fn occupancy_is_shown_host_by_host() {
        let end = Some("2030-01-02T10:00:30.5Z");
        let answer = json!({"last": 1, "seen_until": null, "occupancy": [
            interval(Some("node2"), "held", None, true),
            interval(Some("node1"), "verified", end, false),
            interval(Some("node2"), "unseen", end, false),
            interval(Some("node2"), "unfenced", None, false),
            interval(None, "foreign_instance", end, true),
        ]});
        let wanted = "\x20HOST   FROM                 UNTIL                WHAT                         INSTANCE  PROJECT
 12     2030-01-02 10:00:00  2030-01-02 10:00:30  instance of another project
 node1  2030-01-02 10:00:00  2030-01-02 10:00:30  verified empty
 node2  2030-01-02 10:00:00  ongoing              held
 node2  2030-01-02 10:00:00  2030-01-02 10:00:30  not observed
 node2  2030-01-02 10:00:00  ongoing              fence missing";
        assert_eq!(table(&answer).expect("it reads").in_pipe(), wanted);
        assert_eq!(incomplete(&intervals(&answer).expect("it reads")), ["node1"]);
    }
}
