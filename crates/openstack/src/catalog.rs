//! The catalog of a cloud: its services and their endpoints.

use reqwest::Url;
use serde::Deserialize;

/// Audience of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// All users.
    #[default]
    Public,
    /// The cloud's own services.
    Internal,
    /// The cloud's operators.
    Admin,
}

impl Interface {
    /// Name in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// All services of a cloud.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Catalog(pub Vec<Service>);

/// A service of the catalog.
#[derive(Clone, Debug, Deserialize)]
pub struct Service {
    /// Type of the service: `compute`.
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
}

/// A URL of a service.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoint {
    /// Name of an [`Interface`].
    #[serde(default)]
    pub interface: String,
    #[serde(default)]
    pub region_id: Option<String>,
    /// Field of older catalogs for `region_id`.
    #[serde(default)]
    pub region: Option<String>,
    #[serde(default)]
    pub url: String,
}

impl Endpoint {
    fn region(&self) -> Option<&str> {
        self.region_id.as_deref().or(self.region.as_deref())
    }
}

impl Catalog {
    /// The first endpoint of a service with this interface. `None` for `region` matches any region.
    pub fn endpoint(&self, kind: &str, region: Option<&str>, interface: &str) -> Option<&Endpoint> {
        self.endpoints_of(kind).find(|endpoint| {
            endpoint.interface == interface && region.is_none_or(|region| endpoint.region() == Some(region))
        })
    }

    fn endpoints_of(&self, kind: &str) -> impl Iterator<Item = &Endpoint> {
        self.0.iter().filter(move |service| service.kind == kind).flat_map(|service| &service.endpoints)
    }

    /// URL of a service. `None` for `region` matches any region.
    ///
    /// # Errors
    ///
    /// A text with the endpoints that the catalog has for the service instead, or with the invalid URL.
    pub fn find(&self, kind: &str, region: Option<&str>, interface: Interface) -> Result<Url, String> {
        let wanted = format!(
            "{kind} with interface {}{}",
            interface.name(),
            region.map(|region| format!(" in region {region}")).unwrap_or_default()
        );
        let Some(endpoint) = self.endpoint(kind, region, interface.name()) else {
            let mut others: Vec<String> = self
                .endpoints_of(kind)
                .map(|other| format!("{} in {}", other.interface, other.region().unwrap_or("no region")))
                .collect();
            others.sort_unstable();
            others.dedup();
            others.truncate(10);
            let others = if others.is_empty() { "no endpoint".to_owned() } else { others.join(", ") };
            return Err(format!("the catalog has no {wanted}; of {kind} it has {others}"));
        };
        let url = Url::parse(&endpoint.url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        url.ok_or_else(|| format!("the catalog's address of {wanted} is none: {:?}", endpoint.url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        serde_json::from_str(
            r#"[{"type": "compute", "name": "nova", "endpoints": [
                 {"interface": "public", "region": "A", "region_id": "A", "url": "http://a/v2.1", "id": "1"},
                 {"interface": "internal", "region_id": "A", "url": "http://internal.a/v2.1"},
                 {"interface": "public", "region_id": "B", "url": "http://b/v2.1"},
                 {"interface": "admin", "region_id": "B", "url": "b"}]},
                {"type": "strange"}]"#,
        )
        .expect("a catalog")
    }

    #[test]
    fn a_service_is_found_by_type_region_and_interface() {
        let catalog = catalog();
        let find = |region, interface| catalog.find("compute", region, interface).map(|url| url.to_string());
        assert_eq!(find(None, Interface::Public), Ok("http://a/v2.1".to_owned()));
        assert_eq!(find(Some("B"), Interface::Public), Ok("http://b/v2.1".to_owned()));
        assert_eq!(find(Some("A"), Interface::Internal), Ok("http://internal.a/v2.1".to_owned()));
        let error = find(Some("B"), Interface::Internal).expect_err("none");
        let expected = "the catalog has no compute with interface internal in region B; \
                        of compute it has admin in B, internal in A, public in A, public in B";
        assert_eq!(error, expected);
        assert!(find(Some("B"), Interface::Admin).expect_err("no address").contains("\"b\""));
        let none = catalog.find("placement", None, Interface::Public).expect_err("none");
        assert!(none.ends_with("of placement it has no endpoint"), "{none}");
    }
}
