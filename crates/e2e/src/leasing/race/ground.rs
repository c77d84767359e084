//! The services under test, and the requests of races.

use anyhow::{Context, Result};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::leasing::date::Minute;
use crate::leasing::fleet::{ADDRESSES, NETWORK};
use crate::leasing::http::{Answer, Caller, Http, LIMIT, text};

/// Number of concurrent requests in a race.
pub const RUNNERS: usize = 12;
/// Days until the leases of a race start: so far ahead that no lease starts during the test.
pub const DAYS_AHEAD: i64 = 30;
pub const DAY: i64 = 24 * 60;

/// Services that share a database.
pub struct Ground {
    /// A client of the first service, for requests that aren't part of a race.
    pub caller: Caller,
    /// A client of each service, for the race.
    pub services: Vec<Http>,
}

impl Ground {
    /// Registers the floating IPs. The machines must already be registered as hosts.
    pub fn new(urls: &[String]) -> Result<Self> {
        let caller = Caller::new(urls.first().context("no service")?)?;
        for address in ADDRESSES {
            let address = json!({"floating_network_id": NETWORK, "floating_ip_address": address});
            caller.post("/v1/floatingips", &address)?.expect(201)?;
        }
        let services = urls.iter().map(|url| Http::new(url, LIMIT)).collect::<Result<_>>()?;
        Ok(Self { caller, services })
    }

    /// Sends all requests concurrently, distributed over the services. Answers are in the order of the
    /// requests.
    pub fn together(&self, requests: &[(Method, String, Option<Value>)]) -> Result<Vec<Answer>> {
        let sent = requests.iter().enumerate().map(|(number, (method, path, body))| {
            self.services[number % self.services.len()].send(method.clone(), path, body.as_ref())
        });
        self.caller.wait(join_all(sent)).into_iter().collect()
    }

    pub fn clear(&self) -> Result<()> {
        for lease in self.caller.leases()? {
            self.caller.delete(&format!("/v1/leases/{}", text(&lease, "id")?))?.expect(204)?;
        }
        Ok(())
    }
}

pub fn create(
    name: &str,
    start: Minute,
    end: Minute,
    reservation: &Value,
) -> (Method, String, Option<Value>) {
    let body = json!({"name": name, "start_date": start.sent(), "end_date": end.sent(),
                      "reservations": [reservation]});
    (Method::POST, "/v1/leases".to_owned(), Some(body))
}
