//! Uploads that are received at the same time. Each takes disk before anything is known of it, so there are only so many, and only so
//! many of one user.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many uploads are received at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceLimits {
    /// Of all users.
    pub(crate) all: u32,
    /// Of one user.
    pub(crate) of_user: u32,
}

/// Why there is no place for an upload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlace {
    /// Others have them all.
    #[error("{0} uploads are being received, which is all that may be at once")]
    All(u32),
    /// The user has all that one may have.
    #[error("{0} of your uploads are being received, which is all that may be at once")]
    OfUser(u32),
}

/// Who is being received.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<String, u32>>);

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    user: String,
}

impl Places {
    /// Takes a place for an upload of a user.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn take(self: &Arc<Self>, user: &str, limits: PlaceLimits) -> Result<Place, NoPlace> {
        let mut taken = self.0.lock();
        if taken.values().sum::<u32>() >= limits.all {
            return Err(NoPlace::All(limits.all));
        }
        let own = taken.entry(user.to_owned()).or_default();
        if *own >= limits.of_user {
            return Err(NoPlace::OfUser(limits.of_user));
        }
        *own += 1;
        drop(taken);
        Ok(Place {
            places: Arc::clone(self),
            user: user.to_owned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn there_are_so_many_places_and_a_user_has_not_all_of_them() {
        let limits = PlaceLimits { all: 3, of_user: 2 };
        let places = Arc::new(Places::default());
        let first = places.take("ann", limits).unwrap();
        let second = places.take("ann", limits).unwrap();
        assert_eq!(places.take("ann", limits).unwrap_err(), NoPlace::OfUser(2));
        let other = places.take("bob", limits).unwrap();
        assert_eq!(places.take("bob", limits).unwrap_err(), NoPlace::All(3));
        drop((first, second));
        let third = places.take("ann", limits).unwrap();
        drop((other, third));
        assert!(places.0.lock().is_empty());
    }
}
