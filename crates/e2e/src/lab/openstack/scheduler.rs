//! Changes to the scheduler settings that the lab's scripts write.

use std::fs;

use anyhow::{Context, Result};

use super::Lab;
use crate::lab::scripts::replaced;

/// The scripts' settings for blazar-nova's filter: its path, and the end of the list of enabled filters.
pub const BLAZAR_AVAILABLE: &str = "blazarnova.scheduler.filters.blazar_filter.BlazarFilter";
pub const BLAZAR_ENABLED: &str = ",BlazarFilter\n";

/// The last setting in the section `scheduler`.
pub const LAST_OF_SCHEDULER: &str = "\ndiscover_hosts_in_cells_interval=30\n";

/// Restarts the scheduler with changed settings: pairs of a text that occurs once in the scripts and its
/// replacement.
pub fn set(lab: &Lab, changes: &[(&str, &str)]) -> Result<()> {
    // The script that writes the settings is a copy for this run, so it can be changed.
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
