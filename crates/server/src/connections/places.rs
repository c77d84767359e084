//! Limits on the number of connections, in total and for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open connections, counted in total and by address.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_of_an_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
    turned_away: u64,
}

/// The place of one connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    pub fn new(most: usize, most_of_an_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_an_address, taken: Mutex::default() })
    }

    /// Takes a place for a connection from the address. `None` at a limit, which counts as a rejected
    /// connection.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let mut taken = self.taken();
        let own = taken.by_address.get(&address).copied().unwrap_or(0);
        if taken.all >= self.most || own >= self.most_of_an_address {
            taken.turned_away += 1;
            return None;
        }
        taken.all += 1;
        taken.by_address.insert(address, own + 1);
        Some(Place { places: Arc::clone(self), address })
    }

    pub fn taken_now(&self) -> usize {
        self.taken().all
    }

    /// Number of rejected connections so far.
    pub fn turned_away(&self) -> u64 {
        self.taken().turned_away
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        if let Some(own) = taken.by_address.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn an_address_has_so_many_places_and_others_have_the_rest() {
        let places = Places::new(3, 2);
        let own: Vec<_> = (0..5).filter_map(|_| places.take(address(1))).collect();
        assert_eq!(own.len(), 2);
        let other = places.take(address(2));
        assert!(other.is_some());
        assert!(places.take(address(3)).is_none(), "all are taken");
        assert_eq!((places.taken_now(), places.turned_away()), (3, 4));
    }

    #[test]
    fn a_place_that_is_given_back_is_free() {
        let places = Places::new(1, 1);
        for _ in 0..3 {
            let place = places.take(address(1));
            assert!(place.is_some());
        }
        assert_eq!(places.taken_now(), 0);
        assert!(places.taken().by_address.is_empty());
    }

    #[test]
    fn an_address_is_the_same_in_both_notations() {
        let places = Places::new(9, 1);
        let _place = places.take(address(1));
        assert!(places.take("::ffff:192.0.2.1".parse().expect("an address")).is_none());
    }
}
