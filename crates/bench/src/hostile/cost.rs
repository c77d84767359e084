//! Resource usage of the service: memory, bytes stored and bytes written to disk.

use std::fs::{self, File};
use std::ops::{AddAssign, Sub};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reqwest::Method;
use tokio::time::sleep;

use super::client::{Client, Plan};
use e2e::leasing::http::{Http, LIMIT};

/// Maximum number of requests over which the mean is taken.
const REQUESTS: usize = 100;
/// Time after the last response during which background writes still count.
const SETTLE: Duration = Duration::from_millis(500);

/// The service's process and its database.
#[derive(Debug)]
pub struct Process {
    directory: PathBuf,
    database: PathBuf,
    operator: Http,
}

/// Bytes of the database in use, and bytes written to disk so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes {
    pub kept: f64,
    pub written: f64,
    /// Number of leases in the database.
    pub leases: f64,
}

impl Sub for Bytes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            kept: self.kept - other.kept,
            written: self.written - other.written,
            leases: self.leases - other.leases,
        }
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.written += other.written;
        self.leases += other.leases;
    }
}

/// Means per request.
#[derive(Clone, Copy, Debug)]
pub struct PerRequest {
    pub requests: usize,
    pub body: f64,
    pub bytes: Bytes,
}

impl Process {
    /// Attaches to the process with this ID, which serves `url` from a SQLite database.
    pub fn new(process: u32, url: &str, database: &Path) -> Result<Self> {
        let directory = PathBuf::from(format!("/proc/{process}"));
        let operator = Http::new(url, LIMIT)?.with_token("admin0");
        Ok(Self { directory, database: database.to_owned(), operator })
    }

    /// Resident memory in bytes, now and at its peak since [`Process::forget_peak`].
    pub fn memory(&self) -> Result<[f64; 2]> {
        Ok([self.figure("status", "VmRSS")? * 1024.0, self.figure("status", "VmHWM")? * 1024.0])
    }

    pub fn forget_peak(&self) -> Result<()> {
        fs::write(self.directory.join("clear_refs"), "5").context("cannot reset the peak of memory")
    }

    fn figure(&self, file: &str, name: &str) -> Result<f64> {
        let text = fs::read_to_string(self.directory.join(file))?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = value.and_then(|value| value.split_whitespace().next()).context("no such figure")?;
        Ok(number.parse()?)
    }

    async fn bytes(&self) -> Result<Bytes> {
        let (_, figures) = self.operator.fetch(Method::GET, "/metrics", None).await?;
        let figures = String::from_utf8_lossy(&figures);
        let figure = |name: &str| -> Result<f64> {
            let value = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(value.with_context(|| format!("there is no {name}"))?.parse()?)
        };
        Ok(Bytes {
            kept: bytes_in_use(&self.database)? as f64,
            written: self.figure("io", "write_bytes")?,
            leases: figure("allot_records{kind=\"leases\"}")?,
        })
    }

    /// Mean cost of up to 100 requests of a single client. No request is started later than `lasts` after the
    /// first.
    pub async fn per_request(&self, client: &mut Client, plan: &Plan, lasts: Duration) -> Result<PerRequest> {
        let began = Instant::now();
        let start = self.bytes().await?;
        let mut sum = Bytes::default();
        let (mut requests, mut body) = (0, 0);
        while requests < REQUESTS && (requests == 0 || began.elapsed() < lasts) {
            let around =
                || async { if plan.is_single() { Ok(Bytes::default()) } else { self.bytes().await } };
            let (_, length, [before, after]) = match client.once(plan, around).await {
                Ok(once) => once,
                // Stop early if the fleet is too small for the prey of a hundred requests.
                Err(_) if requests > 0 => break,
                Err(error) => return Err(error),
            };
            sum += after - before;
            requests += 1;
            body += length;
        }
        if plan.is_single() {
            sleep(SETTLE).await;
            sum = self.bytes().await? - start;
        }
        let mean = |sum: f64| sum / requests as f64;
        let bytes =
            Bytes { kept: mean(sum.kept), written: mean(sum.written), leases: mean(sum.leases.abs()) };
        Ok(PerRequest { requests, body: mean(body as f64), bytes })
    }
}

/// Bytes in the used pages of a SQLite database, including those in its write-ahead log.
///
/// The service's own metric is updated only by housekeeping, and the size of the log file doesn't shrink when the log
/// restarts.
fn bytes_in_use(database: &Path) -> Result<u64> {
    const LOG_HEADER: u64 = 32;
    const FRAME_HEADER: u64 = 24;
    let number = |bytes: &[u8], at: usize| -> u64 {
        bytes[at..at + 4].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let mut header = [0; 40];
    File::open(database)?.read_exact_at(&mut header, 0)?;
    let page = u64::from(u16::from_be_bytes([header[16], header[17]]));
    let mut pages = number(&header, 28);
    let log = File::open(database.with_extension("db-wal"))?;
    let mut begin = [0; LOG_HEADER as usize];
    let mut pending = header;
    let mut at = LOG_HEADER;
    let mut frame = [0; FRAME_HEADER as usize + 40];
    if log.read_exact_at(&mut begin, 0).is_ok() {
        // Valid frames repeat the salt of the log header. The last frame of a transaction contains the number of pages.
        while log.read_exact_at(&mut frame, at).is_ok() && frame[8..16] == begin[16..24] {
            if number(&frame, 0) == 1 {
                pending.copy_from_slice(&frame[FRAME_HEADER as usize..]);
            }
            if number(&frame, 4) > 0 {
                (pages, header) = (number(&frame, 4), pending);
            }
            at += FRAME_HEADER + page;
        }
    }
    Ok((pages - number(&header, 36)) * page)
}
