// SPDX-License-Identifier: MIT
//
// rlsf behind the C functions that ../pool.h looks up: `whole_*` over memory given at once (rlsf::Tlsf), `growable_*`
// over a window of addresses of which more is taken as needed (rlsf::FlexTlsf). The structure lives at the front of the
// memory, as brimful's does, so that both pay for it. 32 second-level lists, as the paper and brimful have; a first
// level for blocks below 8 GiB. Blocks are aligned to 16, as malloc's.
use rlsf::{FlexSource, FlexTlsf, Tlsf};
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{null_mut, NonNull};

type Whole = Tlsf<'static, u32, u32, 28, 32>;
type Growable = FlexTlsf<Window, u32, u32, 28, 32>;

const PAGE: usize = 4096;

fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(bytes, 16) }
}

fn out(found: Option<NonNull<u8>>) -> *mut c_void {
    found.map_or(null_mut(), |pointer| pointer.as_ptr().cast())
}

/// A structure placed at the front of `memory`, and what is left behind it.
unsafe fn placed<T>(memory: *mut c_void, bytes: usize, value: impl FnOnce(*mut u8, usize) -> T) -> *mut T {
    let start = memory as *mut u8;
    let size = (std::mem::size_of::<T>() + 63) & !63;
    if (start as usize) % 64 != 0 || bytes < size {
        return null_mut();
    }
    (start as *mut T).write(value(start.add(size), bytes - size));
    start as *mut T
}

/// Addresses that are taken page by page from the front; never given back, as rlsf's own source for Linux does.
struct Window {
    start: *mut u8,
    most: usize,
    taken: usize,
}

unsafe impl FlexSource for Window {
    unsafe fn alloc(&mut self, min_size: usize) -> Option<NonNull<[u8]>> {
        let size = (min_size + PAGE - 1) & !(PAGE - 1);
        if self.taken != 0 || size > self.most {
            return None;
        }
        self.taken = size;
        Some(NonNull::slice_from_raw_parts(NonNull::new(self.start)?, size))
    }
    unsafe fn realloc_inplace_grow(&mut self, _: NonNull<[u8]>, min_new_len: usize) -> Option<usize> {
        let size = (min_new_len + PAGE - 1) & !(PAGE - 1);
        if size > self.most {
            return None;
        }
        self.taken = size;
        Some(size)
    }
    fn supports_realloc_inplace_grow(&self) -> bool {
        true
    }
    fn is_contiguous_growable(&self) -> bool {
        true
    }
    fn min_align(&self) -> usize {
        64
    }
}

#[no_mangle]
pub unsafe extern "C" fn whole_create(memory: *mut c_void, bytes: usize) -> *mut c_void {
    let mut rest = (null_mut(), 0);
    let pool = placed(memory, bytes, |start, left| {
        rest = (start, left);
        Whole::new()
    });
    if pool.is_null() {
        return null_mut();
    }
    let block = NonNull::slice_from_raw_parts(NonNull::new_unchecked(rest.0), rest.1);
    match (*pool).insert_free_block_ptr(block) {
        Some(_) => pool.cast(),
        None => null_mut(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn whole_allocate(pool: *mut c_void, bytes: usize) -> *mut c_void {
    out((*(pool as *mut Whole)).allocate(layout(bytes)))
}

#[no_mangle]
pub unsafe extern "C" fn whole_deallocate(pool: *mut c_void, block: *mut c_void, _bytes: usize) {
    (*(pool as *mut Whole)).deallocate(NonNull::new_unchecked(block.cast()), 16)
}

#[no_mangle]
pub unsafe extern "C" fn whole_reallocate(
    pool: *mut c_void,
    block: *mut c_void,
    _old: usize,
    bytes: usize,
) -> *mut c_void {
    out((*(pool as *mut Whole)).reallocate(NonNull::new_unchecked(block.cast()), layout(bytes)))
}

#[no_mangle]
pub unsafe extern "C" fn growable_create(memory: *mut c_void, bytes: usize) -> *mut c_void {
    placed(memory, bytes, |start, most| Growable::new(Window { start, most, taken: 0 })).cast()
}

#[no_mangle]
pub unsafe extern "C" fn growable_allocate(pool: *mut c_void, bytes: usize) -> *mut c_void {
    out((*(pool as *mut Growable)).allocate(layout(bytes)))
}

#[no_mangle]
pub unsafe extern "C" fn growable_deallocate(pool: *mut c_void, block: *mut c_void, _bytes: usize) {
    (*(pool as *mut Growable)).deallocate(NonNull::new_unchecked(block.cast()), 16)
}

#[no_mangle]
pub unsafe extern "C" fn growable_reallocate(
    pool: *mut c_void,
    block: *mut c_void,
    _old: usize,
    bytes: usize,
) -> *mut c_void {
    out((*(pool as *mut Growable)).reallocate(NonNull::new_unchecked(block.cast()), layout(bytes)))
}
