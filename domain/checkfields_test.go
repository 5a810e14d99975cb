package domain_test

import (
	"testing"
	"time"

	"hubcloud/domain"
)

func TestCheckFields(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string `check:"set"`
	}
	type config struct {
		part    `check:"valid"`
		Call    func()        `check:"set"`
		Rate    float64       `check:"positive"`
		Every   time.Duration `check:"at least 0"`
		Copies  int           `check:"1 to 5"`
		Comment string
	}
	for want, change := range map[string]func(*config){
		"":                                   func(*config) {},
		"test: Name: must be set":            func(c *config) { c.Name = "" },
		"test: Call: must be set":            func(c *config) { c.Call = nil },
		"test: Rate: is 0, must be positive": func(c *config) { c.Rate = 0 },
		"test: Every: is -1s, must be at least 0": func(c *config) { c.Every = -time.Second },
		"test: Copies: is 0, must be 1 to 5":      func(c *config) { c.Copies = 0 },
		"test: Copies: is 6, must be 1 to 5":      func(c *config) { c.Copies = 6 },
	} {
		c := config{part: part{"a"}, Call: func() {}, Rate: .5, Copies: 5}
		change(&c)
		got := ""
		if err := domain.CheckFields("test", c); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
