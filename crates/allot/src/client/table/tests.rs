//! Tests of the layout of tables.

use super::*;

const ID: &str = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";
const ALIKE: &str = "ecdcc9ea-d39d-4032-a9e3-3a8dbcc06753";

fn table() -> Table {
    let mut table = Table::new([
        word("NAME"),
        word("PROJECT").hide(2),
        word("STATUS"),
        date("START"),
        prose("RESERVED"),
        id("ID").hide(1).key(),
    ]);
    let reserved = "2 hosts, 4 instances of 2 vCPU, 4096 MiB, 20 GiB";
    let start = "2026-11-22T03:32:00.000000";
    table.add_row(["thermal-runs", "physics", "TERMINATED", start, reserved, ID]);
    table
}

fn rendered(table: &Table, style: &Style) -> Rendered {
    let now = "2026-11-18T09:00:00Z".parse().expect("a timestamp");
    table.render(style, &TimeZone::UTC, now).expect("its columns are known")
}

fn on_terminal(width: u16) -> Style {
    Style { width: Some(width), ..Style::default() }
}

#[test]
fn columns_are_hidden_in_their_order_and_no_word_is_broken() {
    for width in (52..200).chain([u16::MAX, 0]) {
        let Rendered { text, notes } = rendered(&table(), &on_terminal(width));
        let widest = text.lines().map(super::width).max().unwrap_or(0);
        assert!(width == 0 || widest <= usize::from(width), "{width}:\n{text}");
        for word in ["thermal-runs", "TERMINATED", "Sun 03:32", "instances"] {
            assert!(text.contains(word), "{width}:\n{text}");
        }
        let hidden = notes.iter().find(|note| note.starts_with("Hidden: "));
        let wanted = match (text.contains(&ID[..8]), text.contains("physics")) {
            (true, true) => None,
            (false, true) => Some("Hidden: ID (-o wide shows all columns)"),
            (_, false) => Some("Hidden: ID, PROJECT (-o wide shows all columns)"),
        };
        assert_eq!(hidden.map(String::as_str), wanted, "{width}:\n{text}");
    }
}

#[test]
fn a_value_that_all_rows_have_is_printed_once_above_a_table_that_is_too_wide() {
    let mut table = Table::new([word("NAME").hide(1), word("PROJECT").hide(2), word("STATUS")]);
    table.add_row(["training", "physics", "ACTIVE"]);
    table.add_row(["web", "physics", "ACTIVE"]);
    for (width, lines) in [
        (30, vec![" NAME      PROJECT  STATUS"]),
        (25, vec![" project: physics", " NAME      STATUS"]),
        (12, vec![" project:", " physics,", " status:", " ACTIVE", " NAME"]),
    ] {
        let Rendered { text, notes } = rendered(&table, &on_terminal(width));
        let shown: Vec<&str> = text.lines().take(lines.len()).collect();
        assert_eq!(shown, lines, "{width}:\n{text}");
        assert!(notes.is_empty(), "{notes:?}");
    }
    let bare = rendered(&table, &Style { no_header: true, ..on_terminal(20) });
    assert_eq!(bare.text.lines().count(), 2, "{}", bare.text);
    let paged = rendered(&table.paged(), &on_terminal(20));
    assert_eq!(paged.notes, ["Hidden: NAME (-o wide shows all columns)"], "{}", paged.text);
}

#[test]
fn long_prose_has_enough_columns_before_others_are_shown() {
    let mut table = Table::new([word("HINT"), prose("NOT WITH").hide(1), prose("MEANING").at_least(30)]);
    let meaning = "Whether the hosts are in the same rack or each in another one";
    table.add_row(["location", "different_host group", meaning]);
    for (width, lines, hidden) in [(70, 3, false), (50, 3, true), (30, 5, true)] {
        let Rendered { text, notes } = rendered(&table, &on_terminal(width));
        assert!(text.lines().all(|line| super::width(line) <= usize::from(width)), "{width}:\n{text}");
        assert_eq!((text.lines().count() <= lines, notes.len() == 1), (true, hidden), "{width}:\n{text}");
    }
}

#[test]
fn periods_are_shown_by_their_length() {
    let mut table = Table::new([period("A", "month"), period("B", "day"), period("C", "hour")]);
    table.add_row(["2026-10-31T23:00:00Z"; 3]);
    let zone = TimeZone::get("Europe/Berlin").expect("a zone");
    let text = table.render(&Style::default(), &zone, Timestamp::UNIX_EPOCH).expect("a table").text;
    assert!(text.ends_with(" 2026-11  2026-11-01  2026-11-01 00:00"), "{text}");
}

#[test]
fn columns_without_content_are_hidden_first_where_there_is_no_room() {
    let mut table = Table::new([word("NAME").hide(1), word("HOST"), word("STATUS")]);
    table.add_row(["training", "", "ACTIVE"]);
    for (width, hidden) in [(30, None), (20, Some("HOST")), (8, Some("HOST, NAME"))] {
        let Rendered { text, notes } = rendered(&table, &on_terminal(width));
        let note = hidden.map(|hidden| format!("Hidden: {hidden} (-o wide shows all columns)"));
        assert_eq!(notes, Vec::from_iter(note), "{width}:\n{text}");
    }
}

#[test]
fn identifiers_are_as_long_as_it_takes_to_tell_them_apart() {
    let mut table = table();
    let short = rendered(&table, &on_terminal(200)).text;
    assert!(short.ends_with("  ecdcc9ea"), "{short}");
    table.add_row(["other", "", "", "", "", ALIKE]);
    let longer = rendered(&table, &on_terminal(200)).text;
    assert!(longer.contains("ecdcc9ea-d38 ") || longer.contains("ecdcc9ea-d38\n"), "{longer}");
    assert!(longer.ends_with("ecdcc9ea-d39"), "{longer}");
    let wide = rendered(&table, &Style { format: Format::Wide, ..on_terminal(40) });
    assert!(wide.text.contains(ID) && wide.text.contains("2026-11-22 03:32"), "{}", wide.text);
    assert_eq!(wide.notes, ["Times are UTC."]);
}

#[test]
fn identifiers_in_prose_are_short_on_a_terminal() {
    let mut table = Table::new([prose("NOTE")]);
    table.add_row([format!("To keep {ID}, run: allot lease update {ID} --keep")]);
    let note = rendered(&table, &on_terminal(80)).text;
    assert!(note.ends_with("To keep ecdcc9ea, run: allot lease update ecdcc9ea --keep"), "{note}");
    assert!(rendered(&table, &Style::default()).text.ends_with(&format!("{ID} --keep")));
}

#[test]
fn chosen_columns_are_as_they_were_asked_for() {
    let columns = |name: &str| Some(Rc::new(vec!["id".to_owned(), name.to_owned()]));
    let chosen = rendered(&table(), &Style { columns: columns("start"), ..Style::default() }).text;
    assert_eq!(chosen.lines().count(), 2);
    assert!(chosen.contains(ID) && !chosen.contains("physics"), "{chosen}");
    assert!(chosen.find(ID) < chosen.find("2026"), "{chosen}");
    let unknown = Style { columns: columns("COLOR"), ..Style::default() };
    let refused = table().render(&unknown, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
    let refused = refused.expect_err("no such column").to_string();
    assert_eq!(refused, "--columns COLOR: this table has NAME, PROJECT, STATUS, START, RESERVED, ID");
}

#[test]
fn a_pipe_gets_every_column_in_one_line_each() {
    let text = rendered(&table(), &Style::default()).text;
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains(ID) && text.contains("2026-11-22 03:32"), "{text}");
    let bare = rendered(&table(), &Style { no_header: true, ..Style::default() }).text;
    assert_eq!(bare.lines().count(), 1);
    assert!(bare.starts_with(" thermal-runs"), "{bare}");
}

#[test]
fn programs_get_names_and_quoted_fields() {
    let mut table = table();
    table.add_row(["say \"hi\"", "", "", "", "", ALIKE]);
    let format = |format| rendered(&table, &Style { format, ..on_terminal(80) });
    let names = format(Format::Name);
    assert_eq!((names.text, names.notes.len()), (format!("{ID}\n{ALIKE}"), 0));
    let csv = format(Format::Csv).text;
    let wanted = [
        "NAME,PROJECT,STATUS,START,RESERVED,ID".to_owned(),
        format!(
            "thermal-runs,physics,TERMINATED,2026-11-22 03:32,\"2 hosts, 4 instances of 2 vCPU, 4096 MiB, 20 GiB\",{ID}"
        ),
        format!("\"say \"\"hi\"\"\",,,,,{ALIKE}"),
    ];
    assert_eq!(csv.lines().collect::<Vec<_>>(), wanted);
    let nameless = Table::new([word("WHAT")]);
    let style = Style { format: Format::Name, ..Style::default() };
    assert!(nameless.render(&style, &TimeZone::UTC, Timestamp::UNIX_EPOCH).is_err());
}

#[test]
fn a_table_without_rows_is_a_note() {
    let none = Table::new([word("NAME").key()]).or("There are none.");
    let text = rendered(&none, &Style::default());
    assert_eq!((text.text.as_str(), text.notes), ("", vec!["There are none.".to_owned()]));
    let names = rendered(&none, &Style { format: Format::Name, ..Style::default() });
    assert_eq!((names.text.as_str(), names.notes), ("", vec!["There are none.".to_owned()]));
    let csv = rendered(&none, &Style { format: Format::Csv, ..Style::default() });
    assert_eq!((csv.text.as_str(), csv.notes.len()), ("NAME", 0));
}
