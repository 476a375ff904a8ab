//! Structs of options whose defaults are written beside their fields.

/// Declares a struct of options and its `Default`: the default of each field follows `=`, and the
/// docs of the field end with it.
macro_rules! options {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_about:meta])*
                $field_visibility:vis $field:ident: $type:ty = $default:expr,
            )+
        }
    ) => {
        $(#[$about])*
        $visibility struct $name {
            $(
                $(#[$field_about])*
                #[doc = ""]
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                $field_visibility $field: $type,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}
