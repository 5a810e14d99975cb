package orgfeed

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// A position of 64 groups, as far apart as they can be, fits into 1,000 characters.
func TestPositionText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for groups := 1; groups <= maxGroups; groups++ {
		p := Position{Complete: time.Now().UnixMilli(), Times: make([]int64, groups)}
		for g := range p.Times {
			p.Times[g] = random.Int64()
			if random.IntN(4) == 0 {
				p.Times[g] = 0
			}
		}
		text := p.String()
		got, err := ParsePosition(text, groups)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v: got %+v, %v", p, got, err)
		}
		if len(text) > maxPositionText {
			t.Errorf("%d groups: got %d characters, want at most %d", groups, len(text), maxPositionText)
		}
		if _, err := ParsePosition(text, groups%maxGroups+1); err == nil {
			t.Errorf("a position of %d groups is accepted for another number", groups)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add(Position{Complete: 1, Times: []int64{1}}.String(), 1)
	f.Add(Position{Complete: 1 << 40, Times: []int64{1 << 60, 0, 7}}.String(), 3)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, text string, groups int) {
		if groups < 1 || groups > maxGroups {
			return
		}
		p, err := ParsePosition(text, groups)
		if err == nil && p.String() != text {
			t.Errorf("%q is read as %+v, whose text is %q", text, p, p.String())
		}
	})
}
