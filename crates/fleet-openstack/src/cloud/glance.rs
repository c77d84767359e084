//! Glance.

use fleet::FleetError;
use openstack::{Api, Call};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;

use super::{Cloud, failed};
use crate::wire::Image;

const GLANCE: Api = Api::Image;

/// The version of Glance's API, below the address in the catalog.
const V2: &str = "v2";

/// How changes of an image are written.
const PATCH: &str = "application/openstack-images-v2.1-json-patch";

/// The property of images that says what they were made for.
pub(super) const MADE_FOR: &str = "allot_made_for";

#[derive(Deserialize)]
struct Images {
    images: Vec<Image>,
}

impl Cloud {
    /// Images that were made for that, if they are of that project or of the service's own.
    pub(crate) async fn images(&self, made_for: &str, project: &str) -> Result<Vec<Image>, FleetError> {
        let call = Call::get(GLANCE, "list images", &[V2, "images"]).with_query(MADE_FOR, made_for);
        let images = self.ask::<Images>(call).await?.images;
        let own = self.session.own_token().await.map_err(failed)?.project;
        // Anybody may give an image of theirs any property.
        let ours =
            |image: &Image| image.owner == project || own.as_ref().is_some_and(|own| own.id == image.owner);
        Ok(images.into_iter().filter(ours).collect())
    }

    /// Gives an image to a project. Says whether Glance lets the service do so.
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
