//! Types of the operator's settings for leases.

use leases::filters::{CustomFilter, Filter};
use leases::hints::Hint;
use leases::lease::EndAction;
use leases::preemption::{Class, ClassError, EndState, Mark, ProjectPattern, UnknownMark};
use leases::requirement::Requirement;
use leases::terms::BeforeEndAction;
use serde_json::{Deserializer, Value as Json};
use store::encoding::requirement_json;

use super::value::{Item, Value, items, list};
use crate::duration;

impl Value for BeforeEndAction {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "nothing" => Ok(Self::None),
            "snapshot" => Ok(Self::Snapshot),
            _ => Err("write nothing or snapshot".to_owned()),
        }
    }

    fn show(&self) -> String {
        let name = match self {
            // `Default` refers to this setting, so it can't be its value.
            Self::Default | Self::None => "nothing",
            Self::Snapshot => "snapshot",
        };
        name.to_owned()
    }
}

impl Value for EndAction {
    fn parse(text: &str) -> Result<Self, String> {
        let known = api::v1::end_action_from_name(text);
        known.ok_or_else(|| "write delete, keep, snapshot or migrate".to_owned())
    }

    fn show(&self) -> String {
        let name = match self {
            Self::DeleteGuests => "delete",
            Self::KeepGuests => "keep",
            Self::SnapshotGuests => "snapshot",
            Self::MoveGuests => "migrate",
        };
        name.to_owned()
    }
}

impl Value for Requirement {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |error: api::v1::RequestError| error.hint().unwrap_or_else(|| error.to_string());
        api::v1::read_requirement(&Json::String(text.to_owned())).map_err(wrong)
    }

    fn show(&self) -> String {
        if *self == Self::NONE { String::new() } else { requirement_json(self).to_string() }
    }
}

impl Item for Hint {}

impl Value for Hint {
    fn parse(text: &str) -> Result<Self, String> {
        let all = || Self::ALL.map(Self::name).join(", ");
        Self::from_name(text).ok_or_else(|| format!("unknown hint {text}; the hints are {}", all()))
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

impl Item for Mark {}

impl Value for Mark {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: UnknownMark| error.to_string())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Item for ProjectPattern {}

impl Value for ProjectPattern {
    fn parse(text: &str) -> Result<Self, String> {
        let Ok(pattern) = text.parse();
        Ok(pattern)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Item for Filter {}

impl Value for Filter {
    fn parse(text: &str) -> Result<Self, String> {
        let all = || Self::ALL.iter().map(|filter| filter.name()).collect::<Vec<_>>().join(", ");
        Self::from_name(text).ok_or_else(|| format!("unknown filter {text}; the filters are {}", all()))
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

/// Names must be unique.
impl Value for Vec<Class> {
    fn parse(text: &str) -> Result<Self, String> {
        let mut classes: Self = Vec::new();
        for class in items(text) {
            let wrong = "write NAME=DURATION or NAME=DURATION:stop, such as batch=10m:stop,spot=30s";
            let (name, rest) = class.split_once('=').ok_or(wrong)?;
            let (notice, end_state) = rest.split_once(':').unwrap_or((rest, EndState::Delete.name()));
            let end_state = EndState::from_name(end_state.trim()).ok_or(wrong)?;
            let class = Class::new(name.trim(), Value::parse(notice.trim())?, end_state);
            let class = class.map_err(|error: ClassError| error.to_string())?;
            if classes.iter().any(|known| known.name() == class.name()) {
                return Err(format!("duplicate class {}", class.name()));
            }
            classes.push(class);
        }
        Ok(classes)
    }

    fn show(&self) -> String {
        list(self.iter().map(|class| {
            let (name, notice) = (class.name(), duration::show(class.notice()));
            match class.end_state() {
                EndState::Delete => format!("{name}={notice}"),
                state @ EndState::Stop => format!("{name}={notice}:{}", state.name()),
            }
        }))
    }
}

/// Filters are separated by commas, which expressions also contain. An expression ends where its JSON ends.
impl Value for Vec<CustomFilter> {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write NAME=EXPRESSION, such as LiveHosts=[\"==\", \"$stage\", \"live\"]".to_owned();
        let mut filters = Self::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, expression) = rest.split_once('=').ok_or_else(wrong)?;
            let mut documents = Deserializer::from_str(expression).into_iter::<Json>();
            let document = documents.next().and_then(Result::ok).ok_or_else(wrong)?;
            rest = expression[documents.byte_offset()..].trim_start();
            if !rest.is_empty() {
                rest = rest.strip_prefix(',').ok_or_else(wrong)?.trim_start();
            }
            let name = name.trim();
            let taken = filters.iter().any(|filter| *filter.name == *name);
            if name.is_empty() || taken || Filter::from_name(name).is_some() {
                return Err(format!("a filter needs a unique name: {name:?} is empty or already used"));
            }
            let requirement = api::v1::read_requirement(&document)
                .map_err(|error| format!("{name}: {}", error.hint().unwrap_or_else(|| error.to_string())))?;
            filters.push(CustomFilter { name: name.into(), requirement });
        }
        Ok(filters)
    }

    fn show(&self) -> String {
        list(self.iter().map(|filter| format!("{}={}", filter.name, requirement_json(&filter.requirement))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cls_07_filters_are_chosen_by_name_and_written_as_expressions() {
        let chosen = <BTreeSet<Filter>>::parse("RamFilter, AggregateCoreFilter").expect("names");
        assert_eq!(chosen, [Filter::Core, Filter::Ram].into());
        let error = <BTreeSet<Filter>>::parse("RamFilter,RetryFilter").expect_err("no filter of ours");
        assert!(error.starts_with("unknown filter RetryFilter; the filters are AllHostsFilter, "), "{error}");
        let text = r#"Live=["==", "$stage", "live"], Big = ["and", [">=", "$vcpus", 32]]"#;
        let written = <Vec<CustomFilter>>::parse(text).expect("filters");
        assert_eq!(written.iter().map(|filter| &*filter.name).collect::<Vec<_>>(), ["Live", "Big"]);
        assert_eq!(<Vec<CustomFilter>>::parse(&written.show()), Ok(written), "as it was written");
        assert_eq!(<Vec<CustomFilter>>::parse(""), Ok(Vec::new()));
        for wrong in
            ["Live", "Live=", "Live=[", "=[]", r#"A=["==", "$a", "1"] B=[]"#, "A=[],A=[]", "RamFilter=[]"]
        {
            assert!(<Vec<CustomFilter>>::parse(wrong).is_err(), "{wrong}");
        }
        let error = <Vec<CustomFilter>>::parse(r#"A=["like", "$a", "1"]"#).expect_err("no operator");
        assert!(error.starts_with("A: 'like' is no operator"), "{error}");
    }

    #[test]
    fn cls_07_all_filters_are_applied_by_default() {
        let setting = super::super::TABLE.iter().find(|setting| setting.key == "filters.enabled");
        let default = setting.map(|setting| setting.text(&super::super::Configuration::default()));
        let default = default.unwrap_or_default();
        assert_eq!(<BTreeSet<Filter>>::parse(&default), Ok(Filter::ALL.iter().copied().collect()));
    }
}
