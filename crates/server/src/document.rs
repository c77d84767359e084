//! The parts of the `OpenAPI` document that all routes share.

mod limits;

use api::v1::{ErrorBody, Limits};
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr,
    ResponseBuilder, Schema, SecurityRequirement,
};

use crate::error::{AuthErrorBody, FrameworkErrorBody};
use crate::public::{limited, public};

/// Head of the document: title, version, license and security schemes.
pub(crate) fn head() -> OpenApi {
    let token = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-Auth-Token")));
    let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Allotment: the reservation API")
                .description(Some(
                    "Version 1 of OpenStack's reservation API, as Blazar's clients know it, and a few additions.",
                ))
                .version("1.0")
                .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
                .build(),
        )
        .components(Some(
            ComponentsBuilder::new()
                .security_scheme("token", token)
                .security_scheme("basic", basic)
                .build(),
        ))
        .build()
}

/// Adds responses that every operation can return, and size limits for parts of request bodies.
pub(crate) fn complete(document: OpenApi, limits: &Limits) -> Value {
    // Can't fail: the document consists of text, numbers and lists.
    let mut document = serde_json::to_value(with_answers(document)).unwrap_or_default();
    limits::describe(&mut document, limits);
    document
}

fn with_answers(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            if public(path) {
                add(operation, "403", "Request from a page of another site", error_schema());
                if limited(path) {
                    add(operation, "429", "Too many requests", error_schema());
                    add_of_body(operation);
                }
            } else {
                complete_operation(operation);
            }
            describe_answers(operation);
        }
    }
    document
}

/// Describes responses that have no description. `OpenAPI` requires one even if status and schema say it all.
fn describe_answers(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let description = match status.as_str() {
                "200" | "300" => "Success",
                "201" => "Created",
                "202" => "Accepted, will be carried out",
                "204" => "Done",
                "400" => "The request is malformed, or can't be met",
                "403" => "Not permitted",
                "404" => "Not found, or not visible to the caller",
                "409" => "Conflict with the current state",
                "503" => "The store or the fleet doesn't respond",
                _ => "See the error message in the body",
            };
            description.clone_into(&mut response.description);
        }
    }
}

fn complete_operation(operation: &mut Operation) {
    operation.security = Some(vec![
        SecurityRequirement::new::<_, [&str; 0], &str>("token", []),
        SecurityRequirement::new::<_, [&str; 0], &str>("basic", []),
    ]);
    let either =
        utoipa::openapi::OneOfBuilder::new().item(error_schema()).item(FrameworkErrorBody::schema()).build();
    add(operation, "400", "The request is malformed", RefOr::T(Schema::OneOf(either)));
    add(operation, "401", "Missing or invalid credentials", AuthErrorBody::schema());
    add(operation, "403", "Not permitted", error_schema());
    add(operation, "406", "Unsupported API version", FrameworkErrorBody::schema());
    add(operation, "412", "X-Allot-User or X-Allot-Project names another caller", error_schema());
    add_of_body(operation);
    add(operation, "429", "Too many requests", error_schema());
    add(operation, "500", "Internal error", error_schema());
    add(operation, "503", "The store or the fleet doesn't respond", error_schema());
}

fn add_of_body(operation: &mut Operation) {
    if operation.request_body.is_some() {
        add(operation, "408", "The request body took too long", error_schema());
        add(operation, "413", "The request body is too large", error_schema());
    }
}

fn error_schema() -> RefOr<Schema> {
    ErrorBody::schema()
}

/// Adds a response, unless the operation describes that status itself.
fn add(operation: &mut Operation, status: &str, description: &str, schema: RefOr<Schema>) {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response =
        ResponseBuilder::new().description(description).content("application/json", content).build();
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}
