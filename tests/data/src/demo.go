// Demo is a small order service with a leak, whose core stands in tests/data: customers, orders and a cache, workers
// that wait for jobs, and one goroutine for each notification that nobody receives.
//
// It prints what it holds, one key=value a line, and crashes. It imports little, to keep the executable small.
package main

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

type Customer struct {
	ID     int64
	Name   string
	Email  string
	Orders []*Order
	Next   *Customer // in the order of their registration
}

type Order struct {
	ID       int64
	Customer *Customer
	Lines    []Line
	Placed   time.Time
	Notes    map[string]string
}

type Line struct {
	Article  *Article
	Quantity int32
	Cents    int32
}

type Article struct {
	Code    string
	Title   string
	Related []*Article
}

type Page struct {
	Key     string
	Body    []byte
	Expires time.Time
}

type Cache struct {
	mu    sync.RWMutex
	pages map[string]*Page
	hits  uint64
}

type Job struct {
	Order *Order
	Done  chan error
}

type Notification struct {
	Order   *Order
	Message string
	reply   chan string
}

type Service struct {
	customers map[int64]*Customer
	first     *Customer
	articles  []*Article
	cache     *Cache
	jobs      chan *Job
	leaked    int
	audit     interface{ Record(*Order) }
}

type AuditLog struct{ entries []string }

func (a *AuditLog) Record(o *Order) { a.entries = append(a.entries, "order "+number(o.ID)) }

var service *Service

func number(n int64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return number(n/10) + string(rune('0'+n%10))
}

func (s *Service) stock(n int64) {
	for i := int64(0); i < n; i++ {
		a := &Article{Code: "A-" + number(1000+i), Title: "article number " + number(i)}
		if i > 0 {
			a.Related = append(a.Related, s.articles[i-1])
		}
		s.articles = append(s.articles, a)
	}
}

func (s *Service) register(id int64) *Customer {
	c := &Customer{ID: id, Name: "customer " + number(id), Email: "c" + number(id) + "@shop.example", Next: s.first}
	s.first = c
	s.customers[id] = c
	return c
}

func (s *Service) place(c *Customer, id int64) *Order {
	o := &Order{ID: id, Customer: c, Placed: time.Unix(1700000000+60*id, 0)}
	for i := int64(0); i <= id%4; i++ {
		o.Lines = append(o.Lines, Line{s.articles[(7*id+i)%int64(len(s.articles))], int32(i + 1), int32(100 * i)})
	}
	if id%5 == 0 {
		o.Notes = map[string]string{"gift": "yes", "card": "for customer " + number(c.ID)}
	}
	c.Orders = append(c.Orders, o)
	s.audit.Record(o)
	return o
}

func (c *Cache) store(key string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages[key] = &Page{Key: key, Body: make([]byte, bytes), Expires: time.Unix(1800000000, 0)}
}

func (s *Service) worker(id int) {
	for job := range s.jobs {
		s.work(id, job)
	}
}

//go:noinline
func (s *Service) work(id int, job *Job) { job.Done <- nil }

// Nobody ever reads the reply: the goroutine and all it holds stay.
func (s *Service) notify(o *Order) {
	n := &Notification{o, "order " + number(o.ID) + " was placed", make(chan string)}
	s.leaked++
	go n.deliver()
}

func (n *Notification) deliver() { n.reply <- n.Message }

func (s *Service) expire() {
	for range time.Tick(time.Hour) {
		s.cache.mu.Lock()
		s.cache.hits = 0
		s.cache.mu.Unlock()
	}
}

//go:noinline
func (s *Service) invoice(o *Order) int32 {
	sum := int32(0)
	for _, line := range o.Lines {
		sum += line.Quantity * line.Cents
	}
	return sum + o.discount()
}

func (o *Order) discount() int32 { return int32(o.Customer.ID) / 10 }

func say(key string, n int64) { syscall.Write(1, []byte(key+"="+number(n)+"\n")) }

func main() {
	runtime.GOMAXPROCS(2)
	s := &Service{
		customers: make(map[int64]*Customer),
		cache:     &Cache{pages: make(map[string]*Page)},
		jobs:      make(chan *Job, 32),
		audit:     &AuditLog{},
	}
	service = s
	s.stock(120)
	orders := int64(0)
	for id := int64(1); id <= 400; id++ {
		c := s.register(id)
		for i := int64(0); i < id%5; i++ {
			orders++
			o := s.place(c, orders)
			if orders%16 == 0 {
				s.notify(o)
			}
		}
	}
	for i := int64(0); i < 60; i++ {
		s.cache.store("/article/"+number(i), 4096)
	}
	s.cache.store("/catalogue", 200000)
	for id := 0; id < 4; id++ {
		go s.worker(id)
	}
	go s.expire()
	done := make(chan error)
	for i := int64(1); i <= 100; i++ {
		s.jobs <- &Job{s.customers[i+i%5].last(), done}
		<-done
	}
	time.Sleep(20 * time.Millisecond)
	runtime.GC()

	say("customers", int64(len(s.customers)))
	say("orders", orders)
	say("articles", int64(len(s.articles)))
	say("pages", int64(len(s.cache.pages)))
	say("leaked", int64(s.leaked))
	say("goroutines", int64(runtime.NumGoroutine()))
	// An order without a customer: the invoice cannot be written.
	s.invoice(&Order{ID: orders + 1})
}

func (c *Customer) last() *Order {
	if len(c.Orders) == 0 {
		return nil
	}
	return c.Orders[len(c.Orders)-1]
}
