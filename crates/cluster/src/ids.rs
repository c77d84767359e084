//! Indices of groups, nodes and instances, and identifiers of tags.
//!
//! An index is the position in the input. Input order decides every tie.

use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as a slice index.
            #[inline]
            pub fn at(self) -> usize {
                self.0 as usize
            }

            /// The index for a position; positions come from vectors that hold fewer than 2^32 elements.
            #[inline]
            pub fn from_usize(position: usize) -> Self {
                Self(position as u32)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index!(
    /// A node group, in input order.
    GroupIdx
);
index!(
    /// A node, in input order.
    NodeIdx
);
index!(
    /// An instance, in input order.
    InstanceIdx
);
index!(
    /// An interned tag: equal identifiers mean equal strings.
    TagId
);
