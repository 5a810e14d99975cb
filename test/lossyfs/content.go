package lossyfs

import "math/rand/v2"

// pageSize is the unit in which content is written and lost.
const pageSize = 4096

// content is the content of a file. A nil page has only zeros. Bytes behind size are zeros.
type content struct {
	pages [][]byte
	size  int64
}

// file has two versions of a file's content: now is what programs see, kept is what a power cut
// leaves.
type file struct {
	now, kept content
	// dirty has the pages of now that may differ from the pages of kept. resized is set if the
	// sizes may differ.
	dirty   map[int]struct{}
	resized bool
}

func pagesOf(size int64) int { return int((size + pageSize - 1) / pageSize) }

// readAt fills dest from offset on and returns the number of bytes read.
func (f *file) readAt(dest []byte, offset int64) int {
	if offset >= f.now.size {
		return 0
	}
	dest = dest[:min(int64(len(dest)), f.now.size-offset)]
	for done := 0; done < len(dest); {
		at := offset + int64(done)
		index, within := int(at/pageSize), int(at%pageSize)
		n := min(pageSize-within, len(dest)-done)
		if page := f.now.pages[index]; page != nil {
			copy(dest[done:done+n], page[within:])
		} else {
			clear(dest[done : done+n])
		}
		done += n
	}
	return len(dest)
}

func (f *file) writeAt(data []byte, offset int64) {
	if end := offset + int64(len(data)); end > f.now.size {
		f.resize(end)
	}
	for done := 0; done < len(data); {
		at := offset + int64(done)
		index, within := int(at/pageSize), int(at%pageSize)
		done += copy(f.own(index)[within:], data[done:])
	}
}

// own returns a page of now for writing. It copies a page that now shares with kept.
func (f *file) own(index int) []byte {
	if f.dirty == nil {
		f.dirty = map[int]struct{}{}
	}
	if _, own := f.dirty[index]; !own || f.now.pages[index] == nil {
		page := make([]byte, pageSize)
		copy(page, f.now.pages[index])
		f.now.pages[index] = page
		f.dirty[index] = struct{}{}
	}
	return f.now.pages[index]
}

func (f *file) resize(size int64) {
	f.resized = true
	count := pagesOf(size)
	if size < f.now.size {
		if within := size % pageSize; within > 0 && f.now.pages[count-1] != nil {
			clear(f.own(count - 1)[within:])
		}
		for index := count; index < len(f.now.pages); index++ {
			delete(f.dirty, index)
		}
		f.now.pages = f.now.pages[:count:count]
	}
	for len(f.now.pages) < count {
		f.now.pages = append(f.now.pages, nil)
	}
	f.now.size = size
}

// sync makes now the kept version.
func (f *file) sync() {
	if f.resized {
		f.kept.pages = append([][]byte(nil), f.now.pages...)
	} else {
		for index := range f.dirty {
			f.kept.pages[index] = f.now.pages[index]
		}
	}
	f.kept.size = f.now.size
	f.dirty, f.resized = nil, false
}

// cut replaces now by kept. With a random source, it may also keep unsynced pages: any changed
// page, and any number of the appended pages from the first on.
func (f *file) cut(random *rand.Rand) {
	if random == nil || random.IntN(2) == 0 {
		f.now = content{append([][]byte(nil), f.kept.pages...), f.kept.size}
		f.dirty, f.resized = nil, false
		return
	}
	left := content{append([][]byte(nil), f.kept.pages...), f.kept.size}
	for index := range f.dirty {
		if index < len(left.pages) && random.IntN(2) == 0 {
			left.pages[index] = f.now.pages[index]
		}
	}
	switch grown := len(f.now.pages) - len(left.pages); {
	case f.now.size < left.size:
		left = content{append([][]byte(nil), f.now.pages...), f.now.size}
	case grown > 0:
		from := len(left.pages)
		left.pages = append(left.pages, f.now.pages[from:from+random.IntN(grown+1)]...)
		if len(left.pages) > from {
			left.size = min(f.now.size, int64(len(left.pages))*pageSize)
		}
	case f.now.size > left.size && random.IntN(2) == 0:
		left.size = f.now.size // within the last page
	}
	if within := left.size % pageSize; within > 0 && left.pages[len(left.pages)-1] != nil {
		last := make([]byte, pageSize)
		copy(last, left.pages[len(left.pages)-1][:within])
		left.pages[len(left.pages)-1] = last
	}
	f.kept = left
	f.now = content{append([][]byte(nil), left.pages...), left.size}
	f.dirty, f.resized = nil, false
}
