//! Settings of Nova's scheduler other than those that the lab's scripts write.

use std::fs;

use anyhow::{Context, Result};

use super::Lab;
use crate::lab::scripts::replaced;

/// The lab's settings of the filter of blazar-nova: where it is, and the end of the list of those that are enabled.
pub const BLAZAR_AVAILABLE: &str = "blazarnova.scheduler.filters.blazar_filter.BlazarFilter";
pub const BLAZAR_ENABLED: &str = ",BlazarFilter\n";

/// The last setting of its section `scheduler`.
pub const LAST_OF_SCHEDULER: &str = "\ndiscover_hosts_in_cells_interval=30\n";

/// Restarts the scheduler with settings in which each of these texts of the scripts, which are there once, is another one.
pub fn set(lab: &Lab, changes: &[(&str, &str)]) -> Result<()> {
    // The settings are written by a script, a copy for this run.
    let (script, original) = (lab.scripts.join("up"), lab.scripts.join("up.original"));
    if !original.exists() {
        fs::copy(&script, &original).with_context(|| format!("cannot copy {}", script.display()))?;
    }
    let text = fs::read_to_string(&original);
    let text = text.with_context(|| format!("cannot read {}", original.display()))?;
    let text = replaced(text, changes)?;
    fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
    lab.stop("nova-scheduler")?;
    lab.up()
}
