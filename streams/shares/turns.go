package shares

import (
	"container/heap"
	"math"
	"sync"
)

// Turns is the order in which one worker does what waits for all organizations: what is urgent
// first, then the organization whose work has cost least, then its spender whose work has cost
// least. Who had nothing to do meanwhile has saved up nothing.
type Turns struct {
	account *account

	mu sync.Mutex
	turnsOf
}

// turnsOf are the organizations, or the spenders of one.
type turnsOf struct {
	known   map[string]*turn
	waiting turnHeap
	// now is the cost of the last one that had its turn without being urgent: the least cost with
	// which one can begin to wait.
	now int64
	// most is how many are known before forget removes some.
	most int
}

// turn is an organization, or a spender of one.
type turn struct {
	id     string
	urgent bool
	cost   int64
	// place is the index in the heap; negative for one that does not wait.
	place    int
	spenders turnsOf
}

// NewTurns returns a Turns, which the registry reports; a nil registry reports nothing.
func NewTurns(registry *Registry, resource string) *Turns {
	return &Turns{account: registry.open(resource, 0, nil)}
}

// Another returns a Turns of another worker of the same resource.
func (t *Turns) Another() *Turns { return &Turns{account: t.account} }

// Add makes a spender wait for its turn.
func (t *Turns) Add(s Spender, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	org := t.get(s.Org)
	org.spenders.add(org.spenders.get(s.ID), urgent)
	t.add(org, urgent)
}

// Waiting reports whether a spender waits.
func (t *Turns) Waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

// Next returns the spender whose turn it is, which waits no longer; false if none waits.
func (t *Turns) Next() (s Spender, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return s, false
	}
	org := t.next()
	spender := org.spenders.next()
	if more := org.spenders.waiting; len(more) > 0 {
		t.add(org, more[0].urgent)
	}
	return Spender{org.id, spender.id}, true
}

// Spend counts what the turn of a spender has cost.
func (t *Turns) Spend(s Spender, cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	org := t.get(s.Org)
	org.spenders.spend(org.spenders.get(s.ID), cost)
	t.spend(org, cost)
}

// HeldBack counts that a spender has to wait because its organization has had much.
func (t *Turns) HeldBack(s Spender) { t.account.heldBack(s) }

// HeldBackWaiting counts as held back the organizations that wait and whose work has cost more than
// the last one's that had its turn: the others wait because of them.
func (t *Turns) HeldBackWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, org := range t.waiting {
		if org.cost > t.now {
			t.account.heldBack(Spender{Org: org.id})
		}
	}
}

func (t *turnsOf) get(id string) *turn {
	found := t.known[id]
	if found == nil {
		if t.known == nil {
			t.known = map[string]*turn{}
		}
		if len(t.known) >= max(t.most, 2*(maxIdle+len(t.waiting))) {
			t.forget()
			t.most = 2 * len(t.known) // not each time, if few can be forgotten
		}
		found = &turn{id: id, cost: t.now, place: -1}
		t.known[id] = found
	}
	return found
}

// forget removes the ones that are as new ones would be.
func (t *turnsOf) forget() {
	for id, other := range t.known {
		if other.place < 0 && other.cost <= t.now {
			delete(t.known, id)
		}
	}
}

func (t *turnsOf) add(one *turn, urgent bool) {
	if one.place < 0 {
		one.urgent, one.cost = urgent, max(one.cost, t.now)
		heap.Push(&t.waiting, one)
		return
	}
	one.urgent = one.urgent || urgent
	heap.Fix(&t.waiting, one.place)
}

func (t *turnsOf) next() *turn {
	one := heap.Pop(&t.waiting).(*turn)
	if !one.urgent {
		t.now = max(t.now, one.cost)
	}
	one.urgent = false
	return one
}

func (t *turnsOf) spend(one *turn, cost int64) {
	one.cost += min(cost, math.MaxInt64-one.cost)
	if one.place >= 0 {
		heap.Fix(&t.waiting, one.place)
	}
}

// turnHeap implements heap.Interface.
type turnHeap []*turn

func (h turnHeap) Len() int { return len(h) }

func (h turnHeap) Less(i, j int) bool {
	if h[i].urgent != h[j].urgent {
		return h[i].urgent
	}
	return h[i].cost < h[j].cost
}

func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *turnHeap) Push(one any) {
	one.(*turn).place = len(*h)
	*h = append(*h, one.(*turn))
}

func (h *turnHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	last.place = -1
	return last
}
