//! `allot settings` lists the service's settings.

use api::v1::SettingOf;
use clap::Args;
use serde_json::json;

use super::table::{Table, word};
use super::wire::read;
use super::{ClientError, Session};

/// Selection of settings.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only settings with this text in their key: `limits.`
    text: Option<String>,
    /// Only settings that differ from the default
    #[arg(long)]
    changed: bool,
}

pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/settings", &[]).await?;
    let mut found: Vec<SettingOf> = read(&answer, "settings")?;
    if let Some(text) = &arguments.text {
        found.retain(|setting| setting.key.contains(text));
    }
    if arguments.changed {
        found.retain(|setting| setting.value != setting.default);
    }
    session.print_answer(&json!({"settings": found}), || Ok(table(&found)))
}

pub(super) fn table(found: &[SettingOf]) -> Table {
    let columns = [word("SETTING").key(), word("VALUE"), word("DEFAULT").hide(2), word("SOURCE").hide(1)];
    let mut table = Table::new(columns).or("No matching settings.");
    for SettingOf { key, value, default, source, .. } in found {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.add_row([key.clone(), shown(value), shown(default), source.clone()]);
    }
    table
}
