//! Requests to Glance.

use fleet::FleetError;
use openstack::{Api, Call};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;

use super::{Cloud, failed};
use crate::wire::Image;

const GLANCE: Api = Api::Image;

/// Version of Glance's API: the path below the address in the catalog.
const V2: &str = "v2";

/// Content type of changes to an image.
const PATCH: &str = "application/openstack-images-v2.1-json-patch";

/// Image property with the purpose of an image.
pub(super) const MADE_FOR: &str = "allot_made_for";

#[derive(Deserialize)]
struct Images {
    images: Vec<Image>,
}

impl Cloud {
    /// Images made for `made_for` that belong to that project or to the service's own.
    pub(crate) async fn images(&self, made_for: &str, project: &str) -> Result<Vec<Image>, FleetError> {
        let call = Call::get(GLANCE, "list images", &[V2, "images"]).with_query(MADE_FOR, made_for);
        let images = self.ask::<Images>(call).await?.images;
        let own = self.session.own_token().await.map_err(failed)?.project;
        // Any project can set this property on its own images.
        let ours =
            |image: &Image| image.owner == project || own.as_ref().is_some_and(|own| own.id == image.owner);
        Ok(images.into_iter().filter(ours).collect())
    }

    /// Makes an image private and transfers it to a project. `false` if Glance doesn't let the service do so.
    pub(crate) async fn give_image(&self, id: &str, project: &str) -> Result<bool, FleetError> {
        let call = Call::new(GLANCE, "give image away", Method::PATCH, &[V2, "images", id]).repeatable();
        let changes = json!([
            {"op": "replace", "path": "/visibility", "value": "private"},
            {"op": "replace", "path": "/owner", "value": project},
        ]);
        let call = call.with_body(changes).with_header(CONTENT_TYPE, PATCH);
        self.send_unless(call, &[403]).await.map(|answer| answer.is_some())
    }
}
