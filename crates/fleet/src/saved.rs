//! Serializes identifiers as text, for the states that drivers save.

use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};

/// An identifier with a text form. The crate `leases` doesn't depend on serde.
pub(crate) trait Identifier: Copy + Ord {
    fn text(self) -> String;
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! uuids {
    ($($name:ident),*) => {$(
        impl Identifier for $name {
            fn text(self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Option<Self> {
                let hex: String = text.chars().filter(|c| *c != '-').collect();
                let is_uuid = hex.len() == 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
                u128::from_str_radix(&hex, 16).ok().filter(|_| is_uuid).map(Self)
            }
        }
    )*};
}

uuids!(LeaseId, ReservationId, FloatingIpId, GuestId);

impl Identifier for HostId {
    fn text(self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// For `#[serde(with)]`: an identifier.
pub(crate) mod id {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Identifier;

    pub(crate) fn serialize<T: Identifier, S: Serializer>(id: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&id.text())
    }

    pub(crate) fn deserialize<'de, T: Identifier, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let text = String::deserialize(from)?;
        T::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no identifier")))
    }
}

/// For `#[serde(with)]`: an optional identifier.
pub(crate) mod id_or_none {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Identifier;

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<T: Identifier, S: Serializer>(
        id: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        id.map(Identifier::text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Identifier, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        T::parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is no identifier")))
    }
}

/// For `#[serde(with)]`: a map whose keys are identifiers.
pub(crate) mod by_id {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Identifier;

    pub(crate) fn serialize<K: Identifier, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(id, value)| (id.text(), value)))
    }

    pub(crate) fn deserialize<'de, K: Identifier, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        let map = BTreeMap::<String, V>::deserialize(from)?;
        let entry = |(text, value): (String, V)| match K::parse(&text) {
            Some(id) => Ok((id, value)),
            None => Err(D::Error::custom(format!("{text:?} is no identifier"))),
        };
        map.into_iter().map(entry).collect()
    }
}

/// For `#[serde(with)]`: a map as a list of pairs, because its keys have no text form.
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_as_they_are_written_and_nothing_else_is() {
        let id = GuestId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
        assert_eq!(GuestId::parse(&id.text()), Some(id));
        assert_eq!(HostId::parse(&HostId(7).text()), Some(HostId(7)));
        for wrong in ["", "1", "+cdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "x".repeat(32).as_str()] {
            assert_eq!(GuestId::parse(wrong), None, "{wrong}");
        }
    }
}
