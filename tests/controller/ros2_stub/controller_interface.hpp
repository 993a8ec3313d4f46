// A stand-in for the parts of ros2_control that the exported plugin uses, to compile and run it.
// With NEW_INTERFACES, reading returns an optional value and writing whether it succeeded.
#pragma once
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rclcpp {

class Duration {
public:
  explicit Duration(std::int64_t count) : count_(count) {}
  std::int64_t nanoseconds() const { return count_; }

private:
  std::int64_t count_;
};

class Time {};

struct TimerBase {
  using SharedPtr = std::shared_ptr<TimerBase>;
  std::function<void()> callback;
};

struct Logger {};

struct Parameter {
  std::vector<std::string> value;
  std::vector<std::string> as_string_array() const { return value; }
};

}  // namespace rclcpp

inline std::vector<std::string> &logged() {
  static std::vector<std::string> lines;
  return lines;
}

[[gnu::format(printf, 1, 2)]] inline void log_line(const char *format, ...) {
  char line[500];
  va_list words;
  va_start(words, format);
  std::vsnprintf(line, sizeof line, format, words);
  va_end(words);
  logged().push_back(line);
}

#define RCLCPP_ERROR(logger, ...) ((void)(logger), log_line(__VA_ARGS__))

namespace rclcpp_lifecycle {

class State {};

class Node {
public:
  std::map<std::string, std::vector<std::string>> parameters;
  std::shared_ptr<rclcpp::TimerBase> timer;

  rclcpp::Logger get_logger() const { return {}; }
  rclcpp::Parameter get_parameter(const std::string &name) const { return {parameters.at(name)}; }

  template <typename Rep, typename Period, typename Callback>
  rclcpp::TimerBase::SharedPtr create_wall_timer(std::chrono::duration<Rep, Period>, Callback each) {
    timer = std::make_shared<rclcpp::TimerBase>();
    timer->callback = each;
    return timer;
  }
};

}  // namespace rclcpp_lifecycle

namespace hardware_interface {

class Loaned {
public:
  Loaned(std::string name, double *place) : name_(std::move(name)), place_(place) {}
  const std::string &get_name() const { return name_; }

protected:
  std::string name_;
  double *place_;
};

class LoanedStateInterface : public Loaned {
public:
  using Loaned::Loaned;
#ifdef NEW_INTERFACES
  template <typename T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned int = 10) const {
    return *place_;
  }
#else
  double get_value() const { return *place_; }
#endif
};

class LoanedCommandInterface : public Loaned {
public:
  using Loaned::Loaned;
#ifdef NEW_INTERFACES
  template <typename T>
  [[nodiscard]] bool set_value(const T &value, unsigned int = 10) {
    if (refuses) return false;
    *place_ = value;
    return true;
  }
#else
  void set_value(double value) { *place_ = value; }
#endif
  static inline bool refuses = false;
};

}  // namespace hardware_interface

namespace controller_interface {

enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type : std::uint8_t { OK, ERROR };
enum class interface_configuration_type : std::uint8_t { ALL, INDIVIDUAL, NONE };

struct InterfaceConfiguration {
  interface_configuration_type type;
  std::vector<std::string> names = {};
};

class ControllerInterface {
public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) = 0;
  virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;

  unsigned int update_rate = 0;
  std::shared_ptr<rclcpp_lifecycle::Node> node = std::make_shared<rclcpp_lifecycle::Node>();
  void assign(
    std::vector<hardware_interface::LoanedCommandInterface> &&commands,
    std::vector<hardware_interface::LoanedStateInterface> &&states) {
    command_interfaces_ = std::move(commands);
    state_interfaces_ = std::move(states);
  }

protected:
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

  unsigned int get_update_rate() const { return update_rate; }
  std::shared_ptr<rclcpp_lifecycle::Node> get_node() const { return node; }

  template <typename T>
  void auto_declare(const std::string &name, const T &value) {
    node->parameters.emplace(name, value);
  }
};

}  // namespace controller_interface

#define PLUGINLIB_EXPORT_CLASS(Kind, Base) \
  Base *make_plugin();                     \
  Base *make_plugin() { return new Kind; }
