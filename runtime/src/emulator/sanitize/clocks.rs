//! What happened before what, among the threads of a block: one clock a warp, joined where warps wait for each other.

/// An access is dated by its warp's own clock, which moves on at every barrier and `bar.warp.sync`.
pub type Time = u32;

const BARRIERS: usize = 16;

/// For each warp, up to which time it knows each warp's accesses to be over.
#[derive(Debug)]
pub struct Clocks {
    warps: usize,
    known: Vec<Time>,
    /// For each barrier, what the warps that have arrived know together.
    arrived: Vec<Vec<Time>>,
}

impl Clocks {
    pub fn new(warps: usize) -> Self {
        let mut clocks =
            Clocks { warps, known: vec![0; warps * warps], arrived: vec![vec![0; warps]; BARRIERS] };
        clocks.start();
        clocks
    }

    /// A block starts.
    pub fn start(&mut self) {
        self.known.fill(0);
        for warp in 0..self.warps {
            self.known[warp * self.warps + warp] = 1;
        }
        self.arrived.iter_mut().for_each(|barrier| barrier.fill(0));
    }

    pub fn now(&self, warp: usize) -> Time {
        self.known[warp * self.warps + warp]
    }

    /// Whether an access of another thread, in `warp` at `time`, is over for the threads of `me`.
    pub fn is_over(&self, me: usize, warp: usize, time: Time) -> bool {
        let known = self.known[me * self.warps + warp];
        // The lanes of one warp have no order between two of its synchronisations.
        if me == warp { time < known } else { time <= known }
    }

    /// The lanes of a warp have waited for each other.
    pub fn warp_sync(&mut self, warp: usize) {
        self.known[warp * self.warps + warp] += 1;
    }

    pub fn arrive(&mut self, barrier: usize, warp: usize) {
        let row = &self.known[warp * self.warps..][..self.warps];
        if let Some(arrived) = self.arrived.get_mut(barrier) {
            arrived.iter_mut().zip(row).for_each(|(all, own)| *all = (*all).max(*own));
        }
        self.warp_sync(warp);
    }

    /// A barrier lets those go that wait at it.
    pub fn open(&mut self, barrier: usize, waiting: &[usize]) {
        let Some(arrived) = self.arrived.get_mut(barrier) else { return };
        for warp in waiting {
            let row = &mut self.known[warp * self.warps..][..self.warps];
            row.iter_mut().zip(arrived.iter()).for_each(|(own, all)| *own = (*own).max(*all));
        }
        arrived.fill(0);
    }
}
