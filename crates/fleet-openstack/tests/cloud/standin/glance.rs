//! The part of Glance that the driver uses.

use serde_json::{Value, json};

use super::state::{State, uuid};
use super::{Asked, Reply};

/// Image property that identifies the server and the lease of an image.
const MADE_FOR: &str = "allot_made_for";

#[derive(Clone, Debug)]
pub struct Image {
    pub name: String,
    pub owner: String,
    pub status: &'static str,
    pub visibility: String,
    pub made_for: String,
    /// Number of further listings until the image becomes active. `None`: never.
    pub looks: Option<usize>,
}

/// Nova's image of a server, in the project of the requesting user.
pub fn create(state: &mut State, wanted: &Value) -> String {
    let id = uuid(state.number());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let made = Image {
        name: text(&wanted["name"]),
        owner: "p1".to_owned(),
        status: "queued",
        visibility: "shared".to_owned(),
        made_for: text(&wanted["metadata"][MADE_FOR]),
        looks: state.image_looks,
    };
    state.images.insert(id.clone(), made);
    id
}

pub fn answer(state: &mut State, asked: &Asked<'_>) -> Reply {
    match (asked.method.as_str(), asked.path.as_slice()) {
        ("GET", ["v2", "images"]) => {
            let wanted = asked.query.get(MADE_FOR).map(|text| text.replace("%2F", "/").replace("%3A", ":"));
            let found = state.images.iter_mut().filter(|(_, image)| Some(&image.made_for) == wanted.as_ref());
            let images: Vec<Value> = found
                .map(|(id, image)| {
                    image.looks = image.looks.map(|looks| looks.saturating_sub(1));
                    if image.looks == Some(0) {
                        image.status = "active";
                    }
                    shown((id, image))
                })
                .collect();
            (200, json!({"images": images}))
        }
        ("PATCH", ["v2", "images", id]) if state.images_stay => (
            403,
            json!({"message": format!("You are not permitted to modify 'owner' on image {id}."), "code": "403"}),
        ),
        ("PATCH", ["v2", "images", id]) => match state.images.get_mut(*id) {
            Some(image) => {
                for change in asked.body.as_array().into_iter().flatten() {
                    let value = change["value"].as_str().unwrap_or_default().to_owned();
                    match change["path"].as_str() {
                        Some("/owner") => image.owner = value,
                        Some("/visibility") => image.visibility = value,
                        other => panic!("{other:?}"),
                    }
                }
                (200, shown((&(*id).to_owned(), image)))
            }
            None => (404, json!({"message": format!("No image found with ID {id}"), "code": "404"})),
        },
        _ => (404, json!({"message": "Nothing is here.", "code": "404"})),
    }
}

fn shown((id, image): (&String, &mut Image)) -> Value {
    json!({
        "id": id, "name": image.name, "owner": image.owner, "status": image.status, "visibility": image.visibility,
        "image_type": "snapshot", MADE_FOR: image.made_for,
    })
}
