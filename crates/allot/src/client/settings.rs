//! `allot settings`.

use api::v1::SettingOf;
use clap::Args;
use serde_json::json;

use super::table::text;
use super::wire::read;
use super::{ClientError, Session};

/// Which settings.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only those whose key has this text in it: `limits.`
    text: Option<String>,
    /// Only those that differ from the default
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
    if session.json {
        return session.print_json(&json!({"settings": found}));
    }
    if found.is_empty() {
        return session.print("There are no such settings.");
    }
    let mut table = session.style.table(&["SETTING", "VALUE", "DEFAULT", "SOURCE"]);
    for SettingOf { key, value, default, source, .. } in found {
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.add_row([key, shown(value), shown(default), source]);
    }
    session.print(&text(&table)?)
}
