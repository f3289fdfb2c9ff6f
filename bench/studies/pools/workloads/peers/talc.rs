// SPDX-License-Identifier: MIT
//
// talc behind the C functions that ../pool.h looks up: `whole_*` over memory given at once (Manual), `growable_*` over a
// window of addresses of which more is taken as needed. talc asks for a block's size when it is freed, which the caller
// knows, so it needs no header of ours. It puts its own lists at the front of the memory. Blocks are aligned to 16.
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut, NonNull};
use talc::base::binning::Binning;
use talc::base::Talc;
use talc::source::{Manual, Source};
use talc::DefaultBinning;

const PAGE: usize = 4096;

fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(bytes, 16) }
}

/// Addresses that are taken page by page from the front; never given back.
#[derive(Debug)]
struct Window {
    start: *mut u8,
    most: usize,
    taken: usize,
    end: Option<NonNull<u8>>,
}

unsafe impl Source for Window {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, wanted: Layout) -> Result<(), ()> {
        let first = if talc.source.end.is_none() { 4 * PAGE } else { 0 }; // room for its own lists
        let more = (wanted.size() + 64 + first + PAGE - 1) & !(PAGE - 1);
        let taken = talc.source.taken + more;
        if taken > talc.source.most {
            return Err(());
        }
        let start = talc.source.start;
        let end = match talc.source.end {
            None => unsafe { talc.claim(start, taken) },
            Some(end) => Some(unsafe { talc.extend(end, start.wrapping_add(taken)) }),
        };
        talc.source.taken = taken;
        talc.source.end = end;
        end.map(|_| ()).ok_or(())
    }
}

type Pool<S> = Talc<S, DefaultBinning>;

unsafe fn placed<S: Source>(memory: *mut c_void, pool: Pool<S>) -> *mut Pool<S> {
    (memory as *mut Pool<S>).write(pool);
    memory.cast()
}

fn room<S: Source>() -> usize {
    (std::mem::size_of::<Pool<S>>() + 63) & !63
}

unsafe fn allocate<S: Source>(pool: *mut c_void, bytes: usize) -> *mut c_void {
    match (*(pool as *mut Pool<S>)).allocate(layout(bytes)) {
        Some(block) => block.as_ptr().cast(),
        None => null_mut(),
    }
}

unsafe fn deallocate<S: Source>(pool: *mut c_void, block: *mut c_void, bytes: usize) {
    (*(pool as *mut Pool<S>)).deallocate(block.cast(), layout(bytes))
}

/// As talc's own GlobalAlloc does it: in place, or another block and a copy.
unsafe fn reallocate<S: Source>(pool: *mut c_void, block: *mut c_void, old: usize, bytes: usize) -> *mut c_void {
    let talc = &mut *(pool as *mut Pool<S>);
    if talc.try_realloc_in_place(block.cast(), layout(old), bytes) {
        return block;
    }
    match talc.allocate(layout(bytes)) {
        Some(other) => {
            copy_nonoverlapping(block as *const u8, other.as_ptr(), old.min(bytes));
            talc.deallocate(block.cast(), layout(old));
            other.as_ptr().cast()
        }
        None => null_mut(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn whole_create(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes < room::<Manual>() {
        return null_mut();
    }
    let pool = placed(memory, Pool::new(Manual));
    let start = (memory as *mut u8).add(room::<Manual>());
    match (*pool).claim(start, bytes - room::<Manual>()) {
        Some(_) => pool.cast(),
        None => null_mut(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn growable_create(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes < room::<Window>() {
        return null_mut();
    }
    let start = (memory as *mut u8).add(room::<Window>());
    let window = Window { start, most: bytes - room::<Window>(), taken: 0, end: None };
    placed(memory, Pool::new(window)).cast()
}

#[no_mangle]
pub unsafe extern "C" fn whole_allocate(pool: *mut c_void, bytes: usize) -> *mut c_void {
    allocate::<Manual>(pool, bytes)
}

#[no_mangle]
pub unsafe extern "C" fn whole_deallocate(pool: *mut c_void, block: *mut c_void, bytes: usize) {
    deallocate::<Manual>(pool, block, bytes)
}

#[no_mangle]
pub unsafe extern "C" fn whole_reallocate(
    pool: *mut c_void,
    block: *mut c_void,
    old: usize,
    bytes: usize,
) -> *mut c_void {
    reallocate::<Manual>(pool, block, old, bytes)
}

#[no_mangle]
pub unsafe extern "C" fn growable_allocate(pool: *mut c_void, bytes: usize) -> *mut c_void {
    allocate::<Window>(pool, bytes)
}

#[no_mangle]
pub unsafe extern "C" fn growable_deallocate(pool: *mut c_void, block: *mut c_void, bytes: usize) {
    deallocate::<Window>(pool, block, bytes)
}

#[no_mangle]
pub unsafe extern "C" fn growable_reallocate(
    pool: *mut c_void,
    block: *mut c_void,
    old: usize,
    bytes: usize,
) -> *mut c_void {
    reallocate::<Window>(pool, block, old, bytes)
}
