// Stands for the controller manager: reads commands by line, and answers each by a line.
#include "controller_interface.hpp"

#include <cstdlib>
#include <iostream>
#include <new>
#include <sstream>

using controller_interface::CallbackReturn;
using controller_interface::ControllerInterface;

ControllerInterface *make_plugin();

static bool is_updating = false;

void *operator new(std::size_t size) {
  if (is_updating) std::abort();  // Nothing is allocated in the loop.
  void *place = std::malloc(size);
  if (place == nullptr) throw std::bad_alloc();
  return place;
}
void operator delete(void *place) noexcept { std::free(place); }
void operator delete(void *place, std::size_t) noexcept { std::free(place); }

static const char *word(CallbackReturn result) {
  return result == CallbackReturn::SUCCESS ? "success" : "no";
}

int main() {
  std::unique_ptr<ControllerInterface> plugin(make_plugin());
  const rclcpp_lifecycle::State state;
  std::vector<double> states, commands;
  std::string line, command;
  if (plugin->on_init() != CallbackReturn::SUCCESS) return 1;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    words >> command;
    if (command == "parameter") {
      std::string name, value;
      std::vector<std::string> values;
      words >> name;
      while (words >> value) values.push_back(value);
      plugin->node->parameters[name] = values;
    } else if (command == "rate") {
      words >> plugin->update_rate;
    } else if (command == "configure") {
      std::cout << word(plugin->on_configure(state)) << "\n";
      std::vector<hardware_interface::LoanedCommandInterface> loaned_commands;
      std::vector<hardware_interface::LoanedStateInterface> loaned_states;
      const auto wanted = plugin->command_interface_configuration().names;
      const auto observed = plugin->state_interface_configuration().names;
      commands.assign(wanted.size(), 99.0);
      states.assign(observed.size(), 0.0);
      for (std::size_t i = 0; i < wanted.size(); i++)
        loaned_commands.emplace_back(wanted[i], &commands[i]);
      for (std::size_t i = 0; i < observed.size(); i++)
        loaned_states.emplace_back(observed[i], &states[i]);
      plugin->assign(std::move(loaned_commands), std::move(loaned_states));
    } else if (command == "activate") {
      std::cout << word(plugin->on_activate(state)) << "\n";
    } else if (command == "deactivate") {
      std::cout << word(plugin->on_deactivate(state)) << "\n";
    } else if (command == "refuse") {
      words >> hardware_interface::LoanedCommandInterface::refuses;
    } else if (command == "timer") {
      plugin->node->timer->callback();
    } else if (command == "update") {
      std::int64_t period;
      std::string value;
      words >> period;
      for (double &each : states) {
        words >> value;
        each = std::strtod(value.c_str(), nullptr);
      }
      is_updating = true;
      const auto result = plugin->update(rclcpp::Time(), rclcpp::Duration(period));
      is_updating = false;
      std::cout << (result == controller_interface::return_type::OK ? "ok" : "error");
      std::cout.precision(9);
      for (double each : commands) std::cout << " " << each;
      std::cout << "\n";
    }
    for (const std::string &each : logged()) std::cerr << each << "\n";
    logged().clear();
  }
  return 0;
}
